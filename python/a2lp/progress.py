"""Progress: a function of the user's, or a bar by tqdm."""

from __future__ import annotations

import contextlib


@contextlib.contextmanager
def reporting(progress):
    """The callback for the extension: nothing, tqdm's bars for ``True``, or the function itself."""
    if not progress:
        yield None
        return
    if callable(progress):
        yield progress
        return
    from tqdm.auto import tqdm

    bars: dict = {}

    def show(stage, done, total):
        if stage not in bars:
            for bar in bars.values():
                bar.close()
            unit = "round" if stage == "rounds" else "pair"
            bars[stage] = tqdm(total=total, desc=stage, unit=unit, unit_scale=stage != "rounds", leave=False)
        bars[stage].n = done
        bars[stage].refresh()

    try:
        yield show
    finally:
        for bar in bars.values():
            bar.close()
