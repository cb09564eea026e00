"""Normalised scores as catalogues of results hold them; the same results give the same files.

* ``.eval_results/*.yaml`` belongs into a model's own repository; its ``dataset`` is a benchmark that is registered on
  the Hub, whose tasks are named as our scenarios (https://huggingface.co/docs/hub/eval-results).
* Every Eval Ever (schema 0.3.0, https://evalevalai.com) takes one JSON file for every model, below ``data/``, and a
  line for every episode in a file beside it.
"""

import hashlib
import json
import re
import uuid
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Any

from agents.common.files import replacing
from agents.episode import Episode, Step
from agents.protocol import STANDARD
from agents.turn import Message, Prompt, total_usage, without_prefix
from benchmark.errors import UsageError, storing
from benchmark.runs.folder import folder_name, write_atomically
from benchmark.runs.replay import replay_if_unchanged, requests_of
from benchmark.score.document import AgentView, ScoreView
from benchmark.score.protocols import label, plain_name
from benchmark.show.export import plain
from benchmark.show.notes import ENDS, protocol_note
from benchmark.show.page.tables import LOCAL, SCRIPTED, kind_of
from benchmark.show.table import estimate_figure
from benchmark.show.training_data import Source

EEE_VERSION = "0.3.0"


def write_eval_results(document: Mapping[str, Any], folder: Path, benchmark: str) -> list[Path]:
    """Write ``FOLDER/AGENT/.eval_results/textbench.yaml`` for every model; the name has a protocol that isn't usual.

    ``benchmark`` is the dataset on the Hub that is registered as the benchmark, ``OWNER/NAME``.
    """
    written = []
    for agent, scores in _models(document):
        rules = label(scores[0]["protocol"], scores[0]["moves"])  # an agent's scores are of one protocol
        name = "-".join(["textbench", *filter(None, re.split("[:, ]+", rules))])
        file = folder / folder_name(agent["name"]) / ".eval_results" / f"{name}.yaml"
        written.append(_write(file, "".join(_entry(document, agent, row, benchmark) for row in scores)))
    return written


def _entry(document: Mapping[str, Any], agent: AgentView, row: ScoreView, benchmark: str) -> str:
    score = row["normalized"]
    assert score is not None
    notes = ["normalised score: 0 is blind play, 1 the reference"]
    if interval := estimate_figure(score).interval:
        notes.append(f"{100 * row['confidence']:.4g}% interval {interval}")
    notes += [f"{row['episodes']} episodes", f"{row['normalized_by'].replace('_', '-')} returns"]
    notes += [protocol_note(row)] if (row["protocol"], row["moves"]) != tuple(STANDARD.values()) else []
    notes.append(f"textbench {document['sources'][agent['source']]['textbench_version']}")
    quoted = partial(json.dumps, ensure_ascii=False)  # YAML takes JSON's quotes
    lines = ["- dataset:", f"    id: {quoted(benchmark)}", f"    task_id: {quoted(plain_name(row['scenario']))}"]
    lines.append(f"  value: {score['value']:.4f}")
    if played := _played(document, agent):
        lines.append(f"  date: {quoted(played[:10])}")
    return "\n".join([*lines, f"  notes: {quoted(', '.join(notes))}", ""])


def write_every_eval_ever(
    document: Mapping[str, Any], folder: Path, organization: str, source: Source | None = None
) -> list[Path]:
    """Write ``FOLDER/data/textbench/DEVELOPER/MODEL/UUID.json`` for every model, as ``organization`` provides it.

    With a ``source`` of the same results, ``UUID_samples.jsonl`` beside it has a line for every episode and seat.
    """
    written = []
    for agent, scores in _models(document):
        data = _aggregate(document, agent, scores, organization)
        name = uuid.UUID(bytes=hashlib.sha256(_json(data).encode()).digest()[:16], version=4)
        place = Path("data", "textbench", data["model_info"]["id"])
        if source is not None:
            samples = place / f"{name}_samples.jsonl"
            digest, rows = _write_lines(folder / samples, _instances(source.of_agent(agent["name"]), scores, data))
            if rows:
                data["detailed_evaluation_results"] = {
                    **{"format": "jsonl", "file_path": samples.as_posix(), "total_rows": rows},
                    **{"hash_algorithm": "sha256", "checksum": digest},
                }
                written.append(folder / samples)
        written.append(_write(folder / place / f"{name}.json", _json(data)))
    return written


def _json(data: Mapping[str, Any]) -> str:
    return json.dumps(data, indent=1, ensure_ascii=False) + "\n"


def _instances(source: Source, scores: Sequence[ScoreView], data: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield an instance for every scored episode and seat of an agent: the prompts and responses of all turns.

    Its score is the return on the scale of the normalised score, so that their mean is the normalised plain return. Of
    a decision that was asked again, the last answer is given. Episodes of a game that has changed since are left out.
    """
    rows = {plain_name(row["scenario"]): row for row in scores}
    for record, scenario, names, prompt_maps in source.records():
        seats = [player for player, name in record.agents.items() if name in names]
        row = rows.get(plain_name(record.scenario))
        if row is None:
            continue
        replayed = replay_if_unchanged(record, scenario)
        if replayed is None:
            source.left_out[f"{scenario.name}'s rules or texts have changed since they were played"] += 1
            continue
        requests = list(requests_of(replayed))
        for player in seats:
            if asked := [(step, request) for step, request in requests if step.player == player]:
                prompt_map = prompt_maps[record.agents[player]]
                turns = [(step, without_prefix(prompt_map(request))) for step, request in asked]
                yield _instance(record, player, turns, row, data)


def _instance(
    record: Episode, player: str, turns: Sequence[tuple[Step, Prompt]], row: ScoreView, data: Mapping[str, Any]
) -> dict[str, Any]:
    messages: list[dict[str, Any]] = []
    answers = []
    for step, prompt in turns:
        for message in (*prompt, Message("assistant", step.turn.response)):
            messages.append({"turn_idx": len(messages), "role": message.role, "content": plain(message.content)})
        answer = {"turn_idx": len(messages) - 1, "source": f"messages[{len(messages) - 1}].content"}
        extracted = {"extracted_value": step.action if step.valid else "", "extraction_method": "action tag"}
        answers.append({**answer, **extracted, "is_terminal": step is turns[-1][0]})
    asked = {"raw": plain("\n\n".join(message.content for message in turns[0][1])), "reference": []}
    hashed = json.dumps(asked, sort_keys=True, separators=(",", ":"))
    usage = total_usage(turn.usage for step, _ in turns for turn in step.turns)
    tokens = {"input_tokens": usage.prompt_tokens, "output_tokens": usage.completion_tokens}
    blind, reference, earned = row["blind"]["value"], row["reference"]["value"], record.returns[player]
    assert blind is not None, "a normalised score has a zero"
    assert reference is not None, "and a one"
    return {
        **{name: data[name] for name in ("schema_version", "evaluation_id")},
        **{"model_id": data["model_info"]["id"], "evaluation_name": row["scenario"]},
        "evaluation_result_id": f"{row['scenario']}:normalized",
        "sample_id": f"{plain_name(record.scenario)}/{record.seed}" + (f"/{player}" if len(record.agents) > 1 else ""),
        "sample_hash": hashlib.sha256(hashed.encode()).hexdigest(),
        "interaction_type": "multi_turn",
        "input": asked,
        "messages": messages,
        "answer_attribution": answers,
        "evaluation": {
            "score": (earned - blind) / (reference - blind),
            "is_correct": record.successes[player],
            "num_turns": len(turns),
        },
        **({"token_usage": {**tokens, "total_tokens": sum(tokens.values())}} if any(tokens.values()) else {}),
        "metadata": {"seed": str(record.seed), "player": player, "return": str(earned)},
    }


def _write_lines(file: Path, lines: Iterator[dict[str, Any]]) -> tuple[str, int]:
    """Write JSON lines to a file, and return its SHA-256 and their number; without a line no file is written."""
    first, digest, count = next(lines, None), hashlib.sha256(), 0
    if first is None:
        return "", 0
    file.parent.mkdir(parents=True, exist_ok=True)
    with storing(file), replacing(file, "wb") as stream:
        for line in chain([first], lines):
            text = json.dumps(line).encode() + b"\n"
            digest.update(text)
            stream.write(text)
            count += 1
    return digest.hexdigest(), count


def _aggregate(
    document: Mapping[str, Any], agent: AgentView, scores: Sequence[ScoreView], organization: str
) -> dict[str, Any]:
    played, model, settings = _played(document, agent), _model_id(agent["spec"]), agent["settings"]
    stamp = str(int(datetime.fromisoformat(played).timestamp())) if played else "0"
    source = document["sources"][agent["source"]]
    about = {"deployment_type": "self_deployed" if kind_of(agent) == LOCAL else "unknown", "spec": agent["spec"]}
    timed = {"evaluation_timestamp": played} if played else {}
    arguments = {name: settings[name] for name in ("temperature", "top_p", "max_tokens") if name in settings}

    def result(row: ScoreView) -> dict[str, Any]:
        score = row["normalized"]
        assert score is not None
        uncertainty: dict[str, Any] = {"num_samples": row["episodes"]}
        if score["low"] is not None:
            ends = {"lower": score["low"], "upper": score["high"], "confidence_level": row["confidence"]}
            uncertainty["confidence_interval"] = {**ends, "method": "Bayesian bootstrap over episodes"}
        means = {name: row[name] for name in ("mean_return", "success_rate", "invalid_rate")}
        rules = {"protocol": row["protocol"], "moves": row["moves"], "mode": str(settings.get("mode", ""))}
        return {
            "evaluation_result_id": f"{row['scenario']}:normalized",
            "evaluation_name": row["scenario"],
            "source_data": {"dataset_name": f"textbench/{plain_name(row['scenario'])}", "source_type": "other"},
            **timed,
            "metric_config": {
                "evaluation_description": f"Normalised score: {ENDS}.",
                "metric_id": "textbench.normalized_score",
                "metric_name": "Normalised score",
                "metric_unit": "proportion",
                "lower_is_better": False,
                "score_type": "continuous",
                "min_score": "-Infinity",
                "max_score": "Infinity",
                "additional_details": {
                    "0": row["blind"]["policy"] or "blind play",
                    "1": row["reference"]["source"] or "the reference",
                },
            },
            "score_details": {
                "score": score["value"],
                "details": {name: str(one["value"]) for name, one in means.items() if one is not None},
                "uncertainty": uncertainty,
            },
            "generation_config": {"generation_args": arguments, "additional_details": rules},
        }

    return {
        "schema_version": EEE_VERSION,
        "evaluation_id": f"textbench/{model}/{stamp}",
        **timed,
        "retrieved_timestamp": stamp,
        "source_metadata": {
            "source_name": "textbench",
            "source_type": "evaluation_run",
            "source_organization_name": organization,
            "evaluator_relationship": "other",
        },
        "eval_library": {
            "name": "textbench",
            "version": source["textbench_version"],
            "additional_details": {"commit": source["commit"] or "unknown"},
        },
        "model_info": {
            "name": agent["name"],
            "id": model,
            "additional_details": {**about, "model_availability": "unknown"},
        },
        "evaluation_results": [result(row) for row in scores],
    }


def _models(document: Mapping[str, Any]) -> Iterator[tuple[AgentView, list[ScoreView]]]:
    found = []
    for agent in document["agents"]:
        own = [row for row in document["scores"] if row["agent"] == agent["name"] and row["normalized"]]
        own = [row for row in own if row["rank"] is not None]
        if own and kind_of(agent) != SCRIPTED:
            found.append((agent, own))
    if not found:
        raise UsageError("no score to publish: no model has all episodes of a scenario with a normalised score")
    return iter(found)


def _model_id(spec: str) -> str:
    """Return a model's name with its owner's: ``Qwen/Qwen3-8B`` of ``hf:Qwen/Qwen3-8B``."""
    provider, _, model = spec.partition(":")
    parts = [folder_name(part) for part in (model or provider).split("/") if part.strip(".")]
    owner = parts[0] if len(parts) == 2 else folder_name(provider) if model else "textbench"
    return f"{owner}/{parts[-1] if parts else 'model'}"


def _played(document: Mapping[str, Any], agent: AgentView) -> str:
    source = document["sources"][agent["source"]]
    return source["finished"] or source["started"] or ""


def _write(file: Path, text: str) -> Path:
    file.parent.mkdir(parents=True, exist_ok=True)
    write_atomically(file, text)
    return file
