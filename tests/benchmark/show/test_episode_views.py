"""What the page is told of every step beyond what is recorded: what happened, and why the episode ended."""

from benchmark.runs.folder import RunFolder
from benchmark.runs.replay import ending, replay
from benchmark.score.results import read_columns
from benchmark.show.document_of import results_document
from tests.benchmark.helpers import text_without_checksums
from textgames import SCENARIOS


def test_the_page_is_told_what_happened_and_why_it_ended(small_run):
    document = results_document(read_columns([small_run]))
    texts = document["texts"]
    assert len(set(texts)) == len(texts)
    views = {(v["scenario"], v["agents"]["player_0"], v["seed"]): v for v in document["episodes"]}
    told = set()
    for record in RunFolder.open(small_run).records():
        view = views[record.scenario, record.agents["player_0"], record.seed]
        replayed = replay(record, SCENARIOS[record.scenario])
        places = view["steps"]["happened"]
        assert ["" if place == -1 else texts[place] for place in places] == [*map(replayed.happened, replayed.steps)]
        assert texts[view["ending"]] == ending(record, replayed)
        told |= {texts[view["ending"]], *(texts[place] for place in places if place >= 0)}
    assert {"reached the step limit", "ended by the rules: reached the goal", "bumped into the edge"} <= told


def test_an_episode_of_other_rules_has_no_more_than_its_record(small_run):
    file = small_run / "episodes.jsonl"
    file.write_text(
        text_without_checksums(small_run).replace('"observations_digest":"', '"observations_digest":"other')
    )
    for view in results_document(read_columns([small_run]))["episodes"]:
        assert set(view["steps"]["happened"]) == set(view["steps"]["board"]) == {-1}
        assert view["final_board"] == -1


def test_reasoning_that_came_apart_from_the_response_is_shown(small_run):
    file = small_run / "episodes.jsonl"
    first, *others = text_without_checksums(small_run).splitlines(keepends=True)
    file.write_text(
        first.replace('"response":', '"reasoning":" The goal is near.\\n","response":', 1) + "".join(others)
    )
    document = results_document(read_columns([small_run]))
    shown = [place for view in document["episodes"] for place in view["steps"]["reasoning"] if place >= 0]
    assert [document["texts"][place] for place in shown] == ["The goal is near."]
