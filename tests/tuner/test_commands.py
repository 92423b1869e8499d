"""The command line, as a reader of docs/own-data.md types it."""

import csv
import io
import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from metabo import cli
from metabo.tuner import compare as comparison
from metabo.tuner import store
from metabo.tuner import suggest as suggestion
from metabo.tuner.ledger import Ledger, claim_of
from metabo.tuner.study import Study
from metabo.tuner.trials import claimed
from tests.tuner.conftest import HEADER, rows, write

ROOT = Path(__file__).parents[2]


@pytest.fixture
def metabo(capsys):
    """Return a function that runs a command and returns (standard output, standard error)."""

    def call(*arguments):
        cli.main([str(argument) for argument in arguments])
        return capsys.readouterr()

    return call


def test_from_a_history_to_suggestions_and_back(metabo, files, tmp_path):
    to = tmp_path / "tuning"
    out, err = metabo("pretrain", files[0], "--space", files[1], "--to", to, "--steps", 20)
    assert "38 trials of 4 past studies" in out and "the model sees the ranks of 'error'" in out
    assert f"metabo suggest {to} --count 3 > todo.csv" in out and "count as failed trials" in err
    out, err = metabo("suggest", to, "--count", 3)
    table = list(csv.reader(io.StringIO(out)))
    assert table[0] == [*HEADER[1:-1], "error"] and [row[-1] for row in table[1:]] == ["", "", ""]
    assert err.count("predicted error: ") == 3
    filled = [[*row[:-1], outcome] for row, outcome in zip(table[1:], ("0.12", "failed", "0.3"), strict=True)]
    todo = write(tmp_path / "todo.csv", table[0], filled)
    out, _ = metabo("tell", to, todo)
    assert "told 3; study 'study' has 3 finished trials" in out and "best error: 0.12" in out
    again, _ = metabo("tell", to, todo)  # changes nothing
    assert again == out.replace("told 3;", "told 3, of which 3 were known already (rows 2, 3, 4);")
    one = json.loads(metabo("suggest", to, "--json")[0])
    assert one[0]["predicted"]["low"] < one[0]["predicted"]["median"]
    assert one[0]["parameters"] not in [t["parameters"] for t in Study(to).trials]
    out, _ = metabo("tell", to, "--parameters", json.dumps(one[0]["parameters"]), "--outcome", 0.05)
    assert "best error: 0.05" in out
    metabo("tell", to, "--study", "other", "--parameters", json.dumps(one[0]["parameters"]), "--failed")
    assert len(Study(to).trials) == 4 and Study(to, "other").trials[0]["state"] == "failed"


RATE, MOMENTUM = 0.0029952734, 0.18711565


def claim(folder, configurations):
    """Record configurations as claimed."""
    store.write_trials(folder, "study", claimed(0, configurations, claim_of()), Study(folder).description)


@pytest.mark.parametrize(
    ("rate", "momentum", "cut"),
    [
        ("3.00E-03", "0.187", True),
        ("0.0030", "0.18711565", True),
        ("0.0029952734", "0.19", True),
        ("0.0029", "0.18711565", False),  # another rate
        ("0.0030", "0.1881", False),
    ],
)
def test_digits_that_a_spreadsheet_cut_leave_a_claim_which_is_said(metabo, folder, tmp_path, rate, momentum, cut):
    one = {"learning_rate": RATE, "layers": 3, "batch": 32, "optimiser": "sgd", "momentum": MOMENTUM}
    claim(folder, [one, one | {"layers": 4}])
    cells = [rate, "3", "32", "sgd", momentum, "0.2"]
    place = write(tmp_path / "told.csv", HEADER[1:], [cells])
    err = metabo("tell", folder, place)[1]
    assert err.count("has fewer digits than claim") == cut
    if cut:
        release = re.search(r"metabo (release \S+ --claim \w+)", err)
        metabo(*release[1].split())
        left = [one["parameters"]["layers"] for one in Study(folder).trials if one["state"] == "running"]
        assert left == [4]


def test_a_result_that_was_known_already_is_said(metabo, plain, tmp_path):
    row = ["0.01", "3", "32", "adam", "", "0.2"]
    one = json.dumps({"learning_rate": 0.01, "layers": 3, "batch": 32, "optimiser": "adam"})
    first = write(tmp_path / "first.csv", HEADER[1:], [row, ["0.02", *row[1:]], row])
    assert metabo("tell", plain, first)[0].startswith(
        "told 3, of which 1 was known already (row 4); study 'study' has 2"
    )
    repeats = write(tmp_path / "again.csv", HEADER[1:], [row, [*row[:-1], "0.3"], ["0.02", *row[1:]]])
    out = metabo("tell", plain, repeats)[0]
    assert out.startswith("told 3, of which 2 were known already (rows 2, 4); study 'study' has 3 ")
    assert metabo("tell", plain, "--parameters", one, "--outcome", "0.2")[0].startswith(
        "told 1, which was known already;"
    )
    assert metabo("tell", plain, "--parameters", one, "--outcome", "0.4")[0].startswith("told 1; study 'study' has 4 ")
    corrected = metabo("tell", plain, write(tmp_path / "b.csv", HEADER[1:], [row, row]), "--correct")[0]
    assert corrected.startswith("corrected 2; study 'study' has 2 ")


def test_a_claim_that_a_result_ends_was_not_known(metabo, plain, tmp_path):
    row = ["0.01", "3", "32", "adam", "", "0.2"]
    claim(plain, [{"learning_rate": 0.01, "layers": 3, "batch": 32, "optimiser": "adam", "momentum": None}])
    assert metabo("tell", plain, write(tmp_path / "a.csv", HEADER[1:], [row]))[0].startswith("told 1; ")


def test_a_value_of_a_parameter_that_is_not_in_use_is_said(metabo, plain, tmp_path):
    adam, sgd = ["0.01", "3", "32", "adam", "0.5", "0.2"], ["0.01", "3", "32", "sgd", "0.5", "0.2"]
    todo = write(tmp_path / "todo.csv", HEADER[1:], [sgd, adam])
    ends = "a value of 'momentum', which is not in use there ('when' in space.yaml): it is not read\n"
    assert metabo("tell", plain, todo)[1] == f"note: {todo}: row 3 has {ends}"
    one = {"learning_rate": 0.01, "layers": 3, "batch": 32, "optimiser": "adam", "momentum": 0.5}
    assert (
        metabo("tell", plain, "--parameters", json.dumps(one), "--outcome", "0.3")[1]
        == f"note: --parameters has {ends}"
    )
    kept = json.dumps(one | {"momentum": None})
    assert metabo("tell", plain, "--parameters", kept, "--outcome", "0.3")[1] == ""


def test_an_outcome_that_is_not_finite_is_said_to_be_a_failure(metabo, plain, tmp_path):
    one = json.dumps({"learning_rate": 0.01, "layers": 3, "batch": 32, "optimiser": "adam"})
    err = metabo("tell", plain, "--parameters", one, "--outcome", "nan")[1]
    assert err == "note: outcome nan is not finite: the trial was recorded as failed\n"
    assert metabo("tell", plain, "--parameters", one, "--failed")[1] == ""
    table = [
        [rate, "3", "32", "adam", "", outcome] for rate, outcome in [("0.1", "Failed"), ("0.2", "nan"), ("0.3", "1")]
    ]
    todo = write(tmp_path / "todo.csv", HEADER[1:], table)
    out, err = metabo("tell", plain, todo)
    assert err == f"note: {todo}: row 3 without a finite outcome counts as a failed trial\n"
    assert out.startswith("told 3; study 'study' has 4 finished trials")


def test_a_trial_that_ended_its_claim_is_no_hint_at_another_one(metabo, folder, tmp_path):
    one = {"learning_rate": 0.003, "layers": 3, "batch": 32, "optimiser": "adam", "momentum": None}
    claim(folder, [one, one | {"learning_rate": 0.00301}])
    err = metabo("tell", folder, write(tmp_path / "told.csv", HEADER[1:], [["0.003", "3", "32", "adam", "", "0.2"]]))[1]
    assert "digits" not in err


@pytest.mark.parametrize(("sink", "said"), [("/dev/full", "standard output cannot be written"), ("", "")])
def test_an_output_that_cannot_be_written_ends_without_a_traceback(sink, said):
    """A full disk, and a reader that has gone, as `head` does after its lines."""
    read, write = os.pipe()
    os.close(read)
    stdout = os.open(sink, os.O_WRONLY) if sink else write
    done = subprocess.run(
        [sys.executable, "-c", "from metabo import cli; cli.main(['list', 'methods'])"],
        cwd=ROOT,
        stdout=stdout,
        stderr=subprocess.PIPE,
        text=True,
    )
    os.close(stdout)
    assert done.returncode == 1
    assert done.stderr.startswith(f"metabo: {said}") and "Traceback" not in done.stderr if said else done.stderr == ""


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("learning_rate,layers,batch,optimiser,momentum,error\n0.01,3,32,adam,,\n",
         ["row 2, field 'error' is empty", "'failed'"]),
        ("learning_rate,layers,batch,optimiser,momentum,error\n0.01,9,32,adam,,0.1\n",
         ["row 2, field 'layers': '9' is outside [1, 6]"]),
        ("learning_rate,layers,batch,optimiser,momentum,error\n", ["no rows below the header"]),
        ("learning_rate,layers,batch,optimiser,error\n0.1,3,32,adam,0.1\n", ["column 'momentum' is missing"]),
        ("learning_rate,layers,batch,optimiser,momentum,error\n0.01,3,32,adam,0.1\n", ["row 2 has 5 cells"]),
    ],
)  # fmt: skip
def test_results_with_a_fault_are_not_told(folder, tmp_path, capsys, text, parts):
    (tmp_path / "todo.csv").write_text(text)
    with pytest.raises(SystemExit) as stop:
        cli.main(["tell", str(folder), str(tmp_path / "todo.csv")])
    assert stop.value.code == 1
    shown = capsys.readouterr().err
    for part in ["metabo: ", "todo.csv", *parts]:
        assert part in shown
    assert Study(folder).trials == []


def test_tell_corrects(metabo, folder, tmp_path, capsys):
    header = HEADER[1:]
    row = ["0.01", "3", "32", "adam", ""]
    metabo("tell", folder, write(tmp_path / "a.csv", header, [[*row, "0.012"]]))
    out, _ = metabo("tell", folder, "--correct", write(tmp_path / "b.csv", header, [[*row, "0.12"]]))
    assert "corrected 1; study 'study' has 1 finished trial" in out and "best error: 0.12 " in out
    parameters = json.dumps({"learning_rate": 0.01, "layers": 3, "batch": 32, "optimiser": "adam"})
    assert "best error: 0.2 " in metabo("tell", folder, "--parameters", parameters, "--outcome", 0.2, "--correct")[0]
    never = write(tmp_path / "c.csv", header, [[*row, "0.1"], [], ["0.01", "4", "32", "adam", "", "0.1"]])
    with pytest.raises(SystemExit):
        cli.main(["tell", str(folder), str(never), "--correct"])
    assert f"{never}: row 4, the configuration (learning_rate 0.01, layers 4, " in capsys.readouterr().err
    assert [trial["outcome"] for trial in Study(folder).trials] == [0.2]


def test_a_pipe_is_told_once(metabo, plain):
    """It has nothing left after it was read."""
    reading, writing = os.pipe()
    os.write(writing, "\n".join([";".join(HEADER[1:]), "0,01;3;32;adam;;0,5\n"]).encode())
    os.close(writing)
    try:
        out, err = metabo("tell", plain, f"/dev/fd/{reading}")
    finally:
        os.close(reading)
    assert "told 1; " in out and err == f"/dev/fd/{reading}: UTF-8, columns separated by semicolons, decimal commas\n"


@pytest.mark.parametrize(
    ("names", "options", "said"),
    [
        (["d0", "d0", "d1", "d0", "d0"], [],
         "column 'dataset' names 'd0' in rows 2, 3, 5, ... (4 rows), 'd1' in row 4, and study 'study' is told; keep "
         "the rows of one study, and name it with --study, or delete the column if all rows are of 'study'"),
        (["d0", "d0", "d1", "d0", "d0"], ["--study", "d0"], "column 'dataset' names 'd1' in row 4, and study 'd0' is"),
        (["d0"] * 5, ["--study", "new"], "column 'dataset' names 'd0' in rows 2, 3, 4, ... (5 rows), and study 'new'"),
    ],
)  # fmt: skip
def test_rows_of_other_studies_are_not_told(metabo, plain, tmp_path, capsys, names, options, said):
    table = [[name, "0.01", str(1 + i), "32", "adam", "", "0.5"] for i, name in enumerate(names)]
    todo = write(tmp_path / "todo.csv", HEADER, table)
    with pytest.raises(SystemExit):
        cli.main(["tell", str(plain), str(todo), *options])
    shown = capsys.readouterr().err
    assert shown.startswith(f"metabo: {todo}: {said}") and shown.count("\n") == 1
    assert Ledger(plain).trials == [] and Ledger(plain, "d0").trials == []
    own = write(tmp_path / "own.csv", HEADER, [["d0" if i else "", *row[1:]] for i, row in enumerate(table)])
    assert "told 5; study 'd0' has 5 finished trials" in metabo("tell", plain, own, "--study", "d0")[0]


def test_a_table_with_an_index_is_not_told(plain, tmp_path, capsys):
    todo = write(tmp_path / "todo.csv", ["", *HEADER[1:]], [["0", "0.01", "3", "32", "adam", "", "0.5"]])
    with pytest.raises(SystemExit):
        cli.main(["tell", str(plain), str(todo)])
    assert capsys.readouterr().err == (
        f"metabo: {todo}: row 1, column 1 has no name: the index of a DataFrame (write the file with index=False), or "
        "an empty column of a spreadsheet (delete it)\n"
    )


@pytest.mark.parametrize("outcome", ["-1e-3", "-.001", "-1.0E-03"])
def test_a_negative_outcome_is_told(metabo, plain, outcome):
    path = plain / "study.json"
    space = json.loads(path.read_text())["space"]
    space["outcome"] = {"column": "error", "goal": "minimise"}
    record = {key: value for key, value in Ledger(plain).record.items() if key not in ("prior", "checksum", "format")}
    with store.publishing(plain) as scratch:
        (scratch / "prior.npz").write_bytes(b"no prior")
        store.publish(plain, {**record, "space": space}, scratch / "prior.npz")
    given = '{"learning_rate": 0.01, "layers": 3, "batch": 32, "optimiser": "adam"}'
    metabo("tell", plain, "--outcome", outcome, "--parameters", given)
    metabo("tell", plain, "--study", "s", "--parameters", given, "--outc", outcome)
    assert [Ledger(plain, name).best["outcome"] for name in ("study", "s")] == [-0.001] * 2


@pytest.mark.parametrize("extra", [["a.csv", "b.csv"], ["--wrong"], ["a.csv", "b.csv", "c.csv"]])
def test_arguments_that_are_too_many_are_refused(folder, capsys, extra):
    with pytest.raises(SystemExit):
        cli.main(["tell", str(folder), "--study", "s", *extra])
    assert f"unrecognized arguments: {' '.join(extra)}" in capsys.readouterr().err


@pytest.mark.parametrize(
    "arguments",
    [[], ["--parameters", "{}"], ["--parameters", "{}", "--outcome", "1", "--failed"], ["x.csv", "--parameters", "{}"]],
)
def test_tell_says_what_it_needs(folder, capsys, arguments):
    with pytest.raises(SystemExit):
        cli.main(["tell", str(folder), *arguments])
    assert "give a CSV of results, or --parameters with either --outcome or --failed" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("{", "not JSON"),
        ("[1]", "must be a JSON object"),
        ('{"lr": 0.1, "depth": 2, "lr": 0.2}', "'lr' stands 2 times; leave one"),
    ],
)
def test_parameters_that_are_no_object(folder, capsys, text, fault):
    with pytest.raises(SystemExit):
        cli.main(["tell", str(folder), "--parameters", text, "--outcome", "1"])
    assert fault in capsys.readouterr().err


def test_a_guess_is_named_in_one_line(metabo, folder, monkeypatch):
    def unsound(*args):
        steps = choose(*args)
        return steps._replace(info=steps.info._replace(ok=steps.info.ok & False))

    choose = suggestion.choose
    sound = metabo("suggest", folder)
    monkeypatch.setattr(suggestion, "choose", unsound)
    guessed = metabo("suggest", folder)
    assert sound.err.startswith("predicted") and guessed.out.splitlines()[0] == sound.out.splitlines()[0]
    assert guessed.err.startswith("warning: 1 of 1 suggestions are guesses: ") and guessed.err.count("\n") == 1


def test_no_suggestion_is_refused(folder, capsys):
    with pytest.raises(SystemExit):
        cli.main(["suggest", str(folder), "--count", "0"])
    assert "ask for one suggestion at least" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("option", "value", "part"),
    [
        ("--seed", "-1", "seed is -1; a seed is a whole number from 0"),
        ("--steps", "0", "steps is 0; give a whole number of at least 1, or leave it out"),
        ("--steps", "-3", "steps is -3; give a whole number of at least 1"),
    ],
)
@pytest.mark.parametrize("method", ["blend", "h_nll", "rand"])
def test_a_seed_or_steps_that_are_none_are_refused_by_every_method(
    files, tmp_path, capsys, method, option, value, part
):
    history, space = map(str, files)
    with pytest.raises(SystemExit):
        cli.main(
            ["pretrain", history, "--space", space, "--to", str(tmp_path / "t"), "--method", method, option, value]
        )
    assert capsys.readouterr().err.splitlines()[-1].startswith(f"metabo: {part}")
    assert not (tmp_path / "t").exists()


def test_sizes_without_end_are_refused_in_one_line(folder, files, tmp_path, capsys):
    history, space = files
    calls = [
        (
            ["suggest", folder, "--count", 10**18],
            "count is 1000000000000000000, and at most 10,000 are suggested at once",
        ),
        (
            ["pretrain", history, "--space", space, "--to", tmp_path / "to", "--method", "h_nll", "--steps", 10**18],
            "thousand years; give fewer",
        ),
    ]
    for arguments, part in calls:
        with pytest.raises(SystemExit):
            cli.main([str(one) for one in arguments])
        assert part in capsys.readouterr().err.splitlines()[-1]
    assert not (tmp_path / "to").exists()


def test_claims_are_listed_and_released(metabo, folder):
    metabo("suggest", folder, "--count", 3, "--claim", "--by", "job 7")
    metabo("suggest", folder, "--claim")
    metabo("tell", folder, "--parameters", json.dumps(Study(folder).trials[1]["parameters"]), "--outcome", 0.5)
    head, *lines = metabo("trials", folder)[0].splitlines()
    assert head == f"study 'study' in {folder}: 4 trials (3 running, 1 done, 0 failed)"
    assert [line.split()[1] for line in lines] == ["running", "done", "running", "running"]
    assert " s ago by job 7 " in lines[0] and "@" in lines[3]
    assert len(metabo("trials", folder, "--state", "running")[0].splitlines()) == 4
    names = [line.split()[3].rstrip(",") for line in (lines[0], lines[3])]
    out, _ = metabo("release", folder, "--claim", *names)
    assert out.startswith(f"released 2; study 'study' has 1 running trial\n0  running  claim {names[0]}, ")
    with pytest.raises(SystemExit):
        cli.main(["release", str(folder), "--claim", names[0]])
    assert metabo("release", folder, "--older-than", "2h")[0].startswith("released 0; ")
    assert metabo("release", folder, "--all")[0].startswith("released 1; study 'study' has 0 running trials")
    assert [trial["state"] for trial in Study(folder).trials] == ["done"]


@pytest.mark.parametrize("command", [["suggest"], ["show"], ["release", "--all"]])
def test_a_mistyped_study_is_told_by_commands_that_only_read(metabo, folder, command):
    metabo("suggest", folder, "--study", "resnet", "--claim")
    head, *rest = command
    assert "note:" not in metabo(head, folder, "--study", "resnet", *rest).err
    said = metabo(head, folder, "--study", "rennet", *rest).err
    assert f"note: 'rennet' is a new study in {folder}; others there: resnet. Did you mean 'resnet'?\n" in said


def test_the_folder_of_trials_may_be_the_default_one(metabo, folder, monkeypatch):
    monkeypatch.chdir(shutil.move(folder, folder.with_name("metabo-study")).parent)
    assert metabo("trials")[0].startswith("study 'study' in metabo-study: 0 trials")
    assert metabo("release", "--all")[0].startswith("released 0; ")
    assert metabo("suggest")[0].startswith("learning_rate,")


@pytest.mark.parametrize(
    "given", [["suggest"], ["suggest", "--count", "3"], ["trials", "--state", "done"], ["show"], ["release", "--all"]]
)
def test_a_folder_stands_anywhere_among_the_options(given):
    def folder(*arguments):
        return cli._parsed(cli._parser(), list(arguments)).folder

    assert folder(*given) is None and folder(*given, "mine") == folder(given[0], "mine", *given[1:]) == Path("mine")
    with pytest.raises(SystemExit):
        folder(*given, "mine", "more")


@pytest.mark.parametrize(("given", "folder"), [([], "FOLDER"), (["plain"], "plain"), (["no.csv"], "FOLDER")])
def test_a_csv_is_no_folder(plain, tmp_path, monkeypatch, capsys, given, folder):
    monkeypatch.chdir(tmp_path)
    write(Path("todo.csv"), HEADER[1:], [["0.01", "3", "32", "adam", "", "0.2"]])
    with pytest.raises(SystemExit):
        cli.main(["tell", "todo.csv", *given])
    assert capsys.readouterr().err == (
        f"metabo: todo.csv is a file; give the folder of the study first: metabo tell {folder} todo.csv\n"
    )
    with pytest.raises(SystemExit):
        cli.main(["trials", "todo.csv"])
    assert capsys.readouterr().err == (
        "metabo: todo.csv: is a file; give the folder of the study, which metabo pretrain made\n"
    )


@pytest.mark.parametrize(
    ("arguments", "part"),
    [
        (["release"], "one of the arguments --all --claim --older-than is required"),
        (["release", "--all", "--claim", "1"], "not allowed with argument"),
        (
            ["release", "--claim", "1"],
            "no running trial has the claim '1'; it may have been told or released meanwhile",
        ),
        (["suggest", "--seed", "-1"], "seed is -1; a seed is a whole number from 0 to 2^63 - 1"),
        (["suggest", "--seed", str(2**63)], f"seed is {2**63}; a seed is a whole number from 0 to 2^63 - 1"),
        (["release", "--older-than", ""], "age '': write a number and its unit (s, min, h or d), e.g. 90min"),
        (["tell", "--parameters", "{}", "--outcome", "1e400"], "1e400 is too large for a number; say --failed if"),
        (
            ["tell", "--parameters", "{}", "--outcome", "good"],
            "'good' is no number; write one, or --failed in its place",
        ),
        (
            ["tell", "--parameters", "{}", "--outcome", "-1,5"],
            "'-1,5' is no number; write one, or --failed in its place",
        ),
        (["tell", "--parameters", "{}", "--outcome", "0_12"], "'0_12' is no number; write one, or --failed in its"),
        (["tell", "--parameters", "{}", "--outcome", "٠.٥"], "'٠.٥' is no number; write one, or --failed in its"),
        (["suggest", "--by", "me"], "--by says who claims, so it needs --claim"),
    ],
)
def test_what_a_command_needs_is_said(folder, capsys, arguments, part):
    command, *rest = arguments
    with pytest.raises(SystemExit):
        cli.main([command, str(folder), *rest])
    assert part in capsys.readouterr().err


def test_choices_that_look_alike_survive_the_command_line(metabo, files, tmp_path):
    """As `space.yaml`, a history, a suggestion and a told file have them."""
    choices = "choices: [16, '16', ' 32 ']"
    space = tmp_path / "alike.yaml"
    space.write_text(files[1].read_text().replace("choices: [16, 32, 64]", choices))
    cells = {"16": "16", "32": '"16"', "64": '" 32 "'}
    history = write(tmp_path / "alike.csv", HEADER, [[*row[:3], cells[row[3]], *row[4:]] for row in rows()])
    to = tmp_path / "to"
    metabo("pretrain", history, "--space", space, "--to", to, "--method", "rand")
    table = list(csv.reader(io.StringIO(metabo("suggest", to, "--count", 30, "--claim")[0])))
    assert {row[2] for row in table[1:]} == {"16", '"16"', " 32 "}  # what needs no quotes has none
    metabo("tell", to, write(tmp_path / "todo.csv", table[0], [[*row[:-1], "0.1"] for row in table[1:]]))
    kept = Study(to).trials
    assert [trial["state"] for trial in kept] == ["done"] * 30
    assert {trial["parameters"]["batch"] for trial in kept} == {16, "16", " 32 "}


def test_no_cell_that_is_printed_is_a_formula(metabo, files, tmp_path):
    space = tmp_path / "formulas.yaml"
    text = files[1].read_text().replace("choices: [sgd, adam]", "choices: ['=1+1', '@x']")
    space.write_text(text.replace("{optimiser: sgd}", "{optimiser: '=1+1'}"))
    names = {"sgd": "=1+1", "adam": "@x"}
    table = [[f"-{row[0]}", *row[1:4], names[row[4]], *row[5:]] for row in rows()]
    history = write(tmp_path / "formulas.csv", HEADER, table)
    metabo("pretrain", history, "--space", space, "--to", tmp_path / "to", "--method", "rand")
    printed = metabo("suggest", tmp_path / "to", "--count", 30, "--claim")[0]
    head, *rest = csv.reader(io.StringIO(printed))
    assert {row[3] for row in rest} == {'"=1+1"', '"@x"'}
    metabo("tell", tmp_path / "to", write(tmp_path / "todo.csv", head, [[*row[:-1], "0.1"] for row in rest]))
    kept = Study(tmp_path / "to").trials
    assert [trial["state"] for trial in kept] == ["done"] * 30
    assert {trial["parameters"]["optimiser"] for trial in kept} == {"=1+1", "@x"}


def test_trials_release_and_tell_import_no_jax(plain):
    calls = [["tell", "--parameters", '{"learning_rate": 0.01, "layers": 3, "batch": 32, "optimiser": "adam"}',
              "--outcome", "0.1"], ["trials"], ["release", "--all"]]  # fmt: skip
    program = "import sys; from metabo import cli\n" + "".join(
        f"cli.main({[name, str(plain), *rest]})\n" for name, *rest in calls
    )
    program += "assert 'jax' not in sys.modules"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, cwd=ROOT)
    assert done.returncode == 0, done.stderr
    assert "told 1" in done.stdout and "1 trial (0 running, 1 done, 0 failed)" in done.stdout


def test_a_folder_is_no_place_for_a_page(plain, tmp_path, capsys):
    (tmp_path / "pages").mkdir()
    with pytest.raises(SystemExit) as stop:
        cli.main(["show", str(plain), "--out", str(tmp_path / "pages")])
    said = f"metabo: {tmp_path}/pages: is a folder; name a file with --out, e.g. {tmp_path}/pages/page.html\n"
    assert stop.value.code == 1 and capsys.readouterr().err == said


def test_looking_at_help_imports_no_jax():
    program = "import sys; from metabo import cli\ntry: cli.main(['--help'])\nfinally: assert 'jax' not in sys.modules"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, cwd=ROOT)
    assert done.returncode == 0, done.stderr
    for command in ("pretrain", "suggest", "tell", "trials", "release", "compare", "import"):
        assert command in done.stdout


def test_the_example_of_the_readme_can_be_read():
    from metabo.data.history.past import read_all

    folder = ROOT / "examples" / "own_data"
    (found,) = read_all([folder / "history.csv"], [folder / "space.yaml"])
    assert len(found.tasks) == 7 and sum(len(task.y) for task in found.tasks.values()) == 268


class TestCompare:
    def test_it_runs_the_workflow_on_the_histories(self, files, tmp_path, monkeypatch):
        (tmp_path / "p" / "workflow" / "deep").mkdir(parents=True)
        (tmp_path / "p" / "workflow" / "catalogue.yaml").write_text("")
        monkeypatch.chdir(tmp_path / "p" / "workflow" / "deep")
        called = []

        class Done:
            returncode = 0

        monkeypatch.setattr(comparison.subprocess, "run", lambda command, cwd: called.append((command, cwd)) or Done)
        assert comparison.compare([files[0]], [files[1]], False, "smoke", 3, dry_run=True) == []
        ((command, cwd),) = called
        assert cwd == tmp_path / "p"
        overlays = ["--configfile", "config/smoke.yaml", ".cache/own.yaml"]
        assert command[1:] == ["-m", "snakemake", "--cores", "3", *overlays, "--dry-run", "--", "own"]
        Done.returncode = 1
        with pytest.raises(Exception, match="the same command goes on where it stopped"):
            comparison.compare([files[0]], [files[1]], False, "laptop", 1)

    @pytest.mark.parametrize("cores", ["0", "-2"])
    def test_it_needs_a_core(self, files, tmp_path, monkeypatch, capsys, cores):
        monkeypatch.setattr(comparison.subprocess, "run", None)
        with pytest.raises(SystemExit):
            cli.main(["compare", str(files[0]), "--space", str(files[1]), "--cores", cores, "--dry-run"])
        assert f"cores is {cores}; jobs need a core; give at least 1" in capsys.readouterr().err

    def test_it_needs_the_project(self, files, tmp_path, monkeypatch):
        monkeypatch.chdir(tmp_path)
        with pytest.raises(Exception, match="call it in a clone of the project"):
            comparison.compare([files[0]], [files[1]], False, "smoke", 1)

    def test_a_fault_is_told_before_anything_runs(self, files, capsys):
        shutil.copy(write(files[0].parent / "bad.csv", HEADER, [[*rows()[0][:-1], "x"]]), files[0])
        with pytest.raises(SystemExit):
            cli.main(["compare", str(files[0]), "--space", str(files[1])])
        assert "row 2, field 'error': 'x' is no number" in capsys.readouterr().err

    @pytest.mark.parametrize(("benchmark", "place"), [("own", "hyperbo/own/hyperbo_fig09"),
                                                      ("own_spaces", "mphd/own_spaces/mphd_fig08")])  # fmt: skip
    def test_the_summary_orders_the_methods(self, tmp_path, benchmark, place):
        (tmp_path / place).mkdir(parents=True)
        (tmp_path / place / "figure.png").write_text("")
        lines = ["table,method,panel,iteration,quantity,value"]
        for method, value in (("rand", 3.0), ("h_nll", 1.0)):
            lines += [f"curve,{method},default,{i},mean,{value if i == 5 else 9}" for i in (1, 5)]
            lines += [f"curve,{method},default,5,std,0"]
        (tmp_path / place / "data.csv").write_text("\n".join(lines) + "\n")
        shown = comparison.summary(tmp_path, benchmark)
        assert shown[0].startswith("after 5 iterations, mean ")
        assert [line.split() for line in shown[1:3]] == [["h_nll", "1"], ["rand", "3"]]
        assert shown[-1].strip() == str(tmp_path / place)
