"""The command `textbench credit`."""

import json

import pytest
from pydantic import TypeAdapter

from research.credit.instrument.show.document import CreditDocument

SMALL = ("--groups", "2", "--group-size", "4", "--batches", "2")


def test_credit_prints_one_document(textbench):
    done = textbench("credit", "random", "--game", "kuhn-poker", *SMALL, "--json")
    assert done.code == 0
    document = json.loads(done.out)
    TypeAdapter(CreditDocument).validate_python(document, strict=True)
    assert (document["agent"], document["game"]) == ("random", "kuhn-poker")
    by_name = {method["name"]: method for method in document["methods"]}
    assert {"oracle", "noise", "msgrpo"} <= by_name.keys()
    assert by_name["oracle"]["correlation"]["value"] == pytest.approx(1)
    assert document["truth"]["source"] == "known"


def test_credit_prints_a_table(textbench):
    done = textbench("credit", "random", "--method", "msgrpo", *SMALL, "--quiet")
    assert done.code == 0
    for word in ("credit of random on frozen-lake", "msgrpo", "oracle", "No gradients", "True advantages: exact"):
        assert word in done.out
    assert done.err == ""


def test_the_checklist_is_filled_in_with_what_is_known_and_no_more(textbench):
    wanted = ("--method", "msgrpo", "--method", "vine", "--method", "ppo_turn", "--checklist", "--quiet")
    arguments = ("credit", "random", "--game", "frozen-lake", *SMALL, *wanted)
    done = textbench(*arguments)
    assert done.code == 0
    for line in (
        "[x] Granularity of the credit*: episode: msgrpo; step: vine, ppo_turn, oracle, noise",
        "[x] Family of the method*: Monte Carlo: msgrpo, vine; temporal difference: ppo_turn",
        "[x] A baseline by episode on the same model*: msgrpo",
        "[ ] Hours of training*",
    ):
        assert line in done.out
    document = json.loads(textbench(*arguments, "--json").out)
    TypeAdapter(CreditDocument).validate_python(document, strict=True)
    assert len(document["checklist"]) == 15
    assert [each["item"] for each in document["checklist"] if each["said"] is None] == [
        "Ablation of the credit's parts",
        "Hours of training",
    ]
    assert 0 < document["truth"]["forks"] < 1
    least, median, most = document["episode_lengths"]
    assert 1 <= least <= median <= most <= 8


def test_every_method_is_measured_or_left_out_with_a_reason(textbench):
    done = textbench("credit", "random", "--game", "kuhn-poker", *SMALL, "--method", "all", "--json", "--quiet")
    assert done.code == 0
    document = json.loads(done.out)
    assert {"hcapo", "hiper", "ppo_bilevel", "empg"} <= document["skipped"].keys()
    assert {"gagpo", "beacon", "vine"} <= {method["name"] for method in document["methods"]}


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("random", "--game", "frozen-lak"), "did you mean 'frozen-lake'"),
        (("random", "--game", "paper"), "is several"),
        (("random", "--game", "cleanup-harvest"), "no scenario named"),
        (("random", "--method", "msgrp"), "did you mean 'msgrpo'"),
        (("random", "--draws", "awa"), "did you mean 'aaw'"),
        (("random", "--m", "4"), "name one with --draws"),
        (("random", "--draws", "aaw", "--m", "999"), "--m 999: a batch has"),
        (("random", "--draws", "aaw", "--no-gradient"), "leave out --no-gradient"),
        (("random", "--draws", "aaw"), "there are none: random has no model in this process"),
        (("random", "--groups", "0"), "--groups must be a whole number of at least 1"),
        (("random", "--group-size", "1"), "--group-size must be a whole number of at least 2"),
        (("random", "--format-penalty", "-1"), "--format-penalty must be a number of at least 0"),
        (("tiny", "snake"), "'snake' stands where an option is wanted (see"),
        (("nobody",), "unknown agent 'nobody'"),
        (("random", "--max-states", "10"), "more than 10 states can be reached"),
        (("random", "--game", "word-guess"), "word-guess: "),
    ],
)
def test_a_mistake_is_one_sentence(textbench, arguments, said):
    done = textbench("credit", *SMALL, *arguments)  # of an option that is given twice the last one counts
    assert done.code == 2
    assert said in done.err
    assert "Traceback" not in done.err
    assert "takes no --temperature" not in done.err  # nobody gave one


def test_the_old_name_of_the_limit_of_steps_is_refused_with_the_new_one(textbench):
    done = textbench("credit", "random", "--horizon", "8")
    assert done.code == 2
    assert "there is no option '--horizon'; it is called --max-steps" in done.err
    assert textbench("credit", "random", "--game", "frozen-lake", "--max-steps", "2", *SMALL, "--quiet").code == 0


def test_credit_draws_a_picture(textbench, tmp_path):
    file = tmp_path / "credit.svg"
    done = textbench("credit", "random", "--method", "msgrpo", *SMALL, "--quiet", "--picture", str(file))
    assert done.code == 0
    assert file.read_text().startswith("<svg")
    done = textbench("credit", "random", "--game", "kuhn-poker", *SMALL, "--picture", str(file))
    assert done.code == 2
    assert "can't be drawn" in done.err


def test_a_picture_that_has_no_place_is_refused_before_anything_is_played(textbench, tmp_path):
    for place in (tmp_path, tmp_path / "no" / "file.svg"):
        done = textbench("credit", "random", *SMALL, "--picture", str(place))
        assert done.code == 2
        assert done.err.startswith("textbench: can't write ")
        assert "played" not in done.err  # what is played is told as progress
