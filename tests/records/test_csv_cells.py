"""Texts of users in CSV files that a spreadsheet opens."""

import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from metabo.records.csv_cells import guarded, guarded_frame, is_formula, unguarded


@pytest.mark.parametrize(
    "text", ["=1+1", "@sum(a)", "+cmd|x", "-x", "-", '=HYPERLINK("a")', "=ü", '="a"', " =x", "\t=x", "\r\n@x", "\xa0-x"]
)
def test_what_begins_like_a_formula_stands_in_quotes_and_comes_back(text):
    assert guarded(text) != text and guarded(text).startswith('"') and unguarded(guarded(text)) == text


@pytest.mark.parametrize("text", ['"=1"', '"\\u003d1"', guarded('"@a"'), guarded(guarded("=1"))])
def test_what_looks_like_a_guarded_cell_stands_in_quotes_and_comes_back(text):
    assert guarded(text) != text and unguarded(guarded(text)) == text


@given(st.text(alphabet='"\\=+-@ 1au003d', max_size=12))
def test_every_text_comes_back(text):
    assert unguarded(guarded(text)) == text and not is_formula(guarded(text))


@pytest.mark.parametrize(
    "text", ["", "adam", "-1", "+1e-3", "-inf", "1=1", " -1", "\t+1e3", "  x", '"quoted"', '"', "–5", '"5']
)
def test_other_texts_stay(text):
    assert guarded(text) == text == unguarded(text)


def test_a_table_is_guarded_and_numbers_stay():
    table = pd.DataFrame({"task": ["=a", "b", None], "value": [-1.0, 2.0, 3.0], "count": [-1, 2, 3]})
    assert guarded_frame(table).to_csv(index=False) == 'task,value,count\n"""=a""",-1.0,-1\nb,2.0,2\n,3.0,3\n'
