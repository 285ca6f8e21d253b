"""Names that look like numbers stay as they are written; dates keep the order of the fit."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from atomlearn.datasets import read, write_plink
from atomlearn.storage.intake.written import days_of, order_of

N = 24
CODES = [f"{i:04d}" for i in range(N)]


def table(**columns: Any) -> pd.DataFrame:
    return pd.DataFrame({"id": CODES, "a": np.arange(N) ** 2 % 7 + 0.5, **columns})


@pytest.mark.parametrize(
    ("ending", "asked"),
    [(".csv", {"id": "id"}), (".parquet", {}), (".xlsx", {}), ("frame", {"id": "id"})],
)
def test_zeros_in_front_of_a_name_stay(ending: str, asked: Any, tmp_path: Path) -> None:
    given, path = table(y=np.arange(N) % 2), tmp_path / f"d{ending}"
    if ending == ".csv":
        given.to_csv(path, index=False)
    elif ending == ".parquet":
        given.to_parquet(path)
    elif ending == ".xlsx":
        pytest.importorskip("openpyxl")
        given.to_excel(path, index=False)
    found = read(given if ending == "frame" else path, "y", **asked)
    assert found.ids == tuple(CODES)
    assert found.feature_names == ("a",)


def test_long_numbers_and_wells_of_a_plate_are_names(tmp_path: Path) -> None:
    for name, cells in (
        ("account_id", [f"{10**17 + i}" for i in range(N)]),
        ("sample_id", [f"{i}E10" for i in range(N)]),
    ):
        path = tmp_path / "d.csv"
        table(y=np.arange(N) % 2).assign(id=cells).rename(columns={"id": name}).to_csv(
            path, index=False
        )
        assert read(path, "y").ids == tuple(cells)


@pytest.mark.parametrize(
    ("order", "theirs"), [("given", "without zeros"), ("reversed", "as they are")]
)
def test_samples_with_zeros_in_front_are_joined(order: str, theirs: str, tmp_path: Path) -> None:
    """Genotypes keep their names as text; a spreadsheet may have taken zeros off the others."""
    write_plink(tmp_path / "g.bed", np.arange(4.0 * N).reshape(N, 4) % 3, samples=CODES)
    value = np.arange(N) + 0.5
    names = CODES if theirs == "as they are" else [str(int(code)) for code in CODES]
    pheno = pd.DataFrame({"FID": names, "IID": names, "trait": value})
    pheno.iloc[:: -1 if order == "reversed" else 1].to_csv(tmp_path / "p.csv", index=False)
    found = read(tmp_path / "g.bed", pheno=tmp_path / "p.csv")
    assert found.y is not None
    assert found.y.tolist() == value.tolist()
    assert found.ids == tuple(CODES)


def test_minus_nine_is_unknown_where_samples_have_an_iid_alone(tmp_path: Path) -> None:
    write_plink(tmp_path / "g.bed", np.arange(4.0 * N).reshape(N, 4) % 3, samples=CODES)
    trait = np.where(np.arange(N) == 5, -9.0, np.arange(N))
    pd.DataFrame({"#IID": CODES, "trait": trait}).to_csv(tmp_path / "p.tsv", sep="\t", index=False)
    found = read(tmp_path / "g.bed", pheno=tmp_path / "p.tsv")
    assert found.X.shape[0] == N - 1


def test_phenotypes_without_a_header_are_told(tmp_path: Path) -> None:
    write_plink(tmp_path / "g.bed", np.arange(4.0 * N).reshape(N, 4) % 3, samples=CODES)
    lines = [f"F{code} {code} {i + 0.5}\n" for i, code in enumerate(CODES)]
    (tmp_path / "p.txt").write_text("".join(lines))
    with pytest.raises(ValueError, match="first line, such as: FID IID trait"):
        read(tmp_path / "g.bed", pheno=tmp_path / "p.txt")


def test_a_sample_on_two_rows_has_one_phenotype_and_that_is_told(tmp_path: Path) -> None:
    table().assign(id=["0001", *CODES[1:]]).to_csv(tmp_path / "d.csv", index=False)
    pd.DataFrame({"id": CODES, "y": np.arange(N) + 0.5}).to_csv(tmp_path / "p.csv", index=False)
    found = read(tmp_path / "d.csv", id="id", pheno=tmp_path / "p.csv")
    assert found.y is not None
    assert found.y[:3].tolist() == [1.5, 1.5, 2.5]
    assert any("several rows" in note and "0001" in note for note in found.notes)


def test_dates_are_read_in_the_order_of_the_fit(tmp_path: Path) -> None:
    """3/4/2021 is in April where the model saw 25/4/2021, whatever the new rows would suggest."""
    from atomlearn.storage.intake.cells import TextForm
    from atomlearn.storage.intake.encode import encoded_again
    from atomlearn.storage.intake.text import TextFile

    path, new = tmp_path / "d.csv", tmp_path / "new.csv"
    days = pd.to_datetime("2021-01-01") + pd.to_timedelta(np.arange(0, 10 * N, 10), "D")
    table(day=days.strftime("%d/%m/%Y"), y=np.arange(N) % 2).to_csv(path, index=False)
    fitted = read(path, "y", dates="elapsed")
    assert fitted.X[:, 1].tolist() == list(range(0, 10 * N, 10))
    for cell, day in (("03/04/2021", 92), ("03.04.2021", 92), ("2021-04-03", 92)):
        new.write_text(f"a,day\n1,{cell}\n")
        held = TextFile(new, TextForm()).frame()
        assert encoded_again(held, fitted.schema.columns)["day"].tolist() == [day]
    new.write_text("a,day\n1,04/13/2021\n")
    held = TextFile(new, TextForm()).frame()
    with pytest.raises(ValueError, match=r"no dates \(day first\).*2024-03-31"):
        encoded_again(held, fitted.schema.columns)


def test_an_order_that_is_a_guess_is_told(tmp_path: Path) -> None:
    path = tmp_path / "d.csv"
    cells = [f"{1 + i % 12:02d}/{1 + i % 9:02d}/2021" for i in range(N)]
    table(day=cells, y=np.arange(N) % 2).to_csv(path, index=False)
    found = read(path, "y", dates="parts")
    assert any("month/day/year" in note for note in found.notes)
    assert order_of(["3/3/2021"]) == ("month", False)
    assert order_of(["3.4.2021"]) == ("day", False)
    assert days_of(["3/4/2021"], "day") != days_of(["3/4/2021"], "month")


def test_gene_numbers_and_descriptions_beside_the_samples(tmp_path: Path) -> None:
    """Entrez numbers name the genes, under a heading too; columns of text are no samples."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((N, 5))
    genes = pd.DataFrame(X.T, index=pd.Index(range(1000, 1005), name="entrez"), columns=CODES)
    genes.insert(0, "Description", [f"gene {j} of them" for j in range(5)])
    genes.to_csv(tmp_path / "g.csv")
    pd.DataFrame({"sample": CODES, "y": X[:, 0]}).iloc[::-1].to_csv(tmp_path / "p.csv", index=False)
    found = read(tmp_path / "g.csv", transpose=True, pheno=tmp_path / "p.csv")
    assert found.feature_names == ("1000", "1001", "1002", "1003", "1004")
    np.testing.assert_allclose(found.X, X)
    np.testing.assert_allclose(found.y, X[:, 0])
    assert any("'Description'" in note for note in found.notes)


def test_truth_is_the_same_in_words_and_as_a_type(tmp_path: Path) -> None:
    from atomlearn.storage.intake.encode import encoded_again

    flags = np.arange(N) % 3 == 0
    given = table(flag=flags, y=np.arange(N) % 2)
    given.to_csv(tmp_path / "d.csv", index=False)
    given.to_parquet(tmp_path / "d.parquet")
    from atomlearn.storage.intake.cells import TextForm
    from atomlearn.storage.intake.registry import format_of

    for first, second in ((".csv", ".parquet"), (".parquet", ".csv")):
        fitted = read(tmp_path / f"d{first}", "y")
        path = tmp_path / f"d{second}"
        cells = format_of(path).cells
        assert cells is not None
        again = encoded_again(cells(path, TextForm(), None).frame(), fitted.schema.columns)
        [name] = [name for name in again if name.startswith("flag")]
        assert again[name].tolist() == flags.astype(float).tolist()


def test_missing_values_of_pandas_own_types() -> None:
    given = table(
        flag=pd.array([None if i % 5 == 0 else i % 2 == 0 for i in range(N)], dtype="boolean"),
        word=pd.array([None if i % 4 == 0 else "xy"[i % 2] for i in range(N)], dtype="string"),
        count=pd.array([None if i % 6 == 0 else i % 3 for i in range(N)], dtype="Int64"),
        y=np.arange(N) % 2,
    )
    found = read(given, "y", missing="indicator")
    names = list(found.feature_names or ())
    for name, step in (("flag", 5), ("word", 4), ("count", 6)):
        flags = found.X[:, names.index(f"{name}=missing")]
        assert flags.tolist() == [float(i % step == 0) for i in range(N)]
