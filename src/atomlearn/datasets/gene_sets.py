"""Gene set files (.gmt): sets of features by name, for ``norms.LatentGroups``."""

from __future__ import annotations

from pathlib import Path

from atomlearn.storage.formats.compressed import open_text


def read_gene_sets(path: str | Path) -> dict[str, list[str]]:
    """Read the gene sets of a .gmt file (also .gz, .bz2, .xz) as a dict from name to members.

    Each line has a name, a description and the members of a set, separated by tabs. Members keep
    their order; duplicates in a line and empty fields are removed.

    Parameters
    ----------
    path : str or Path
        The file.

    Returns
    -------
    dict of str to list of str
        The members of each set, by its name, in the order of the file.

    Raises
    ------
    FileNotFoundError
        If there is no such file.
    ValueError
        If a line has no member, or a name occurs twice; with the number of the line.
    """
    source = Path(path)
    sets: dict[str, list[str]] = {}
    with open_text(source) as stream:
        for number, line in enumerate(stream, start=1):
            if not line.strip():
                continue
            # The first field after the name is the description.
            name, *fields = (field.strip() for field in line.rstrip("\r\n").split("\t"))
            members = list(dict.fromkeys(member for member in fields[1:] if member))
            if not name or not members:
                raise ValueError(
                    f"{source}, line {number}: a set needs a name, a description and at least one "
                    "member, separated by tabs; is this a .gmt file?"
                )
            if name in sets:
                raise ValueError(
                    f"{source}, line {number}: set {name!r} was there before; give sets distinct "
                    "names"
                )
            sets[name] = members
    return sets
