"""Reviews from Python: corrections, the page, and what is kept."""

import json
import urllib.error
import urllib.request

import numpy as np
import pytest

import a2lp


@pytest.fixture
def result():
    rng = np.random.default_rng(0)
    ys, yt = np.arange(90) % 3, np.arange(120) % 4

    def rows(axes, shift):
        x = 0.3 + shift + 0.6 * rng.uniform(-1, 1, (len(axes), 8))
        x[np.arange(len(axes)), axes] += 2
        return x.astype("f4")

    names = np.array(["mug", "bike", "bowl"], dtype=object)[ys]
    return a2lp.label(rows(ys, 0), names, rows(yt, 0.1), ids=[f"item {row}" for row in range(120)], unknown="off")


def ask(session, path, body=None):
    address, token = session.url.split("/#")
    headers = {"X-A2LP-Token": token, "Content-Type": "application/json"}
    data = None if body is None else json.dumps(body).encode()
    with urllib.request.urlopen(urllib.request.Request(address + path, data, headers)) as answer:
        return answer.read()


def test_corrections_spread_and_can_be_taken_back(result):
    with a2lp.review(result) as session:
        assert session.labels.tolist() == result.labels.tolist()
        changed = session.correct({row: "spoon" for row in [3, 7, 11, 15, 19]})
        spoons = session.labels == "spoon"
        assert changed >= 10 and spoons[np.arange(120) % 4 == 3].mean() > 0.5
        assert session.corrections == {row: "spoon" for row in [3, 7, 11, 15, 19]}
        assert (session.origin == "person").sum() == 5 and (session.confidence[[3, 7]] == 1).all()
        session.undo()
        assert session.labels.tolist() == result.labels.tolist() and session.corrections == {}
        assert len(session.doubtful(4)) >= 3 and session.certificate is None
        with pytest.raises(ValueError, match="no row 500"):
            session.correct({500: "mug"})
    with pytest.raises(ValueError, match="stopped"):
        session.undo()


def test_the_page_shows_what_it_is_given(result, tmp_path):
    images = np.random.default_rng(0).integers(0, 255, (120, 6, 5, 3), dtype=np.uint8)
    with a2lp.review(result, images=images, texts=[f"text {row}" for row in range(120)]) as session:
        assert ask(session, "/api/picture/3").startswith(b"\x89PNG")
        assert json.loads(ask(session, "/api/text/7")) == {"text": "text 7"}
        assert b"<title>a2lp review</title>" in ask(session, "/")
        frame = session._repr_html_()
        assert frame.startswith("<iframe") and session.url in frame
        with pytest.raises(urllib.error.HTTPError, match="403"):
            urllib.request.urlopen(session.url.split("/#")[0] + "/api/session")
    with pytest.raises(ValueError, match="2 images for 120 target rows"):
        a2lp.review(result, images=["a.png", "b.png"])


def test_a_journal_goes_on_and_certifies(result, tmp_path):
    journal, truth = tmp_path / "review.jsonl", result.labels
    with a2lp.review(result, journal=journal) as session:
        session.correct({0: "mug"})
        while True:
            check = json.loads(ask(session, "/api/check?as_is=1"))
            if check["check"]["signed_off"] or check["next"] is None:
                break
            row = check["next"]["row"]
            ask(session, "/api/answer", {"row": row, "said": truth[row]})
        labels = session.labels.tolist()
    with a2lp.review(result, journal=journal) as session:
        assert session.labels.tolist() == labels
        certificate = session.certificate
        assert certificate["accepted_items"] > 0 and "with 95 % confidence" in certificate["statement"]
        session.export(tmp_path / "labels.csv")
        with pytest.raises(OSError, match="exists"):
            session.export(tmp_path / "labels.csv")
    (tmp_path / "certificate.json").write_text(json.dumps(certificate))
    from a2lp import _native

    assert _native.main(["a2lp", "review", "--verify", str(tmp_path / "certificate.json"), str(tmp_path / "labels.csv")]) == 0
    header = (tmp_path / "labels.csv").read_text().splitlines()[0]
    assert header.endswith("origin,accepted")


def test_numbers_stay_numbers():
    rng = np.random.default_rng(1)
    source = rng.normal(size=(40, 6)).astype("f4")
    result = a2lp.label(source, np.arange(40) % 2, source + 0.01, unknown="off")
    with a2lp.review(result) as session:
        session.correct({1: 0})
        assert session.corrections == {1: 0} and session.labels.dtype.kind == "i"
        assert session.labels[1] == 0
