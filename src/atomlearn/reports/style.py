"""Style: sizes, colors and limits of all that is drawn, in one place."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Style:
    """How reports look. Lengths are in units of a drawing, which scales with its place.

    Limits are what a reader can tell apart or a page can hold, not what is computed; files have
    everything.

    Attributes
    ----------
    width, height : of a drawing: wide enough for 20 marks, small enough for a phone.
    panel, panel_height : of a curve; panels stand side by side where there is room.
    network, network_radius : side of the drawing of interactions, and radius of their circle.
    picture, picture_gap : width of one of several pictures, and the space between two.
    row : height of a bar with its label.
    name : letters of a name that a drawing shows.
    most_rows : lines of the table of features; more make a page slow.
    most_bars : more are thinner than a pixel.
    most_curves : panels; more make a page slow.
    most_nodes : columns in the network; more cannot be told apart on one circle.
    most_groups, most_columns : of structured models; more could not be read.
    most_pixels : a side of a picture; larger matrices are drawn by block means of \\|values\\|.
    most_points : of a scatter plot.
    most_values : of the target, for its histogram.
    most_notes : on reading the data.
    most_places : along chromosomes, at each of which the strongest feature is drawn.
    enough_places : share of names that must tell a place, for any to be believed.
    band, fewest_halves : quantiles of curves of halves that are shaded, and halves for that.
    most_twins, most_boxes : features that are looked at one by one.
    small : entries of the data below which halves are fitted without being asked for.
    least_gap : where a gap of zero, which has no logarithm, is drawn.
    useful_gap : a relative gap beyond it bounds nothing that matters, and is not drawn.
    least_share : a proved distance from the optimum below it is said to be below it.
    series : colors of lines, bars and groups; the first is also that of negative values.
    positive : color of positive values.
    rest : color of what has none of its own.
    sheet : style sheet of drawings that stand alone; on the page report.css is.

    Examples
    --------
    >>> from atomlearn.reports.style import STYLE
    >>> STYLE.width, STYLE.most_rows
    (480.0, 300)
    """

    width: float = 480.0
    height: float = 280.0
    panel: float = 320.0
    panel_height: float = 190.0
    network: float = 640.0
    network_radius: float = 172.0
    picture: float = 260.0
    picture_gap: float = 16.0
    row: float = 20.0
    name: int = 18
    most_rows: int = 300
    most_bars: int = 160
    most_curves: int = 24
    most_nodes: int = 36
    most_groups: int = 40
    most_columns: int = 200
    most_pixels: int = 800
    most_points: int = 600
    most_values: int = 20_000
    most_notes: int = 12
    most_places: int = 900
    enough_places: float = 0.9
    band: tuple[float, float] = (0.1, 0.9)
    fewest_halves: int = 6
    most_twins: int = 30
    most_boxes: int = 12
    small: int = 2_000_000
    least_gap: float = 1e-16
    useful_gap: float = 0.9
    least_share: float = 1e-9
    series: tuple[str, ...] = ("#2f6fd6", "#d1603d", "#2a9d72", "#a35bd0", "#c79a1b", "#3aa3b8")
    positive: str = "#c0392b"
    rest: str = "#bbb"
    sheet: str = (
        "text{font:11px system-ui,sans-serif;fill:#333}.label{font-size:12px}"
        ".grid{stroke:#e4e4e4}.axis{stroke:#888}.outline{fill:none;stroke:#888}"
    )


STYLE = Style()
