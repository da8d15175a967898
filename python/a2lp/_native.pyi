from collections.abc import Sequence
from os import PathLike
from typing import Any, Callable

import numpy as np
from numpy.typing import NDArray

__version__: str

_Answers = tuple[NDArray[np.int64], NDArray[np.float32], NDArray[np.float32], list[str]]
_Graph = tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.float32]]
_Callback = Callable[[str, int, int], Any]

def check_settings(settings: dict[str, Any]) -> None: ...
def fit(
    x: Sequence[NDArray[np.float32]],
    order: NDArray[np.int64],
    labels: NDArray[np.uint32],
    classes: Sequence[str],
    settings: dict[str, Any],
    graph: _Graph | None = None,
    callback: _Callback | None = None,
) -> Fitted: ...
def neighbor_graph(
    x: NDArray[np.float32], settings: dict[str, Any], symmetric: bool, callback: _Callback | None = None
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.float32], str, str | None]: ...
def _resize(image: NDArray[np.uint8], width: int, height: int, bicubic: bool) -> NDArray[np.uint8]: ...
def main(args: Sequence[str]) -> int: ...

class Fitted:
    @property
    def model(self) -> Predictor: ...
    @property
    def converged(self) -> bool: ...
    @property
    def neighbours_secs(self) -> float: ...
    def targets(self) -> _Answers: ...
    def anchors(self) -> tuple[NDArray[np.float32], list[tuple[int, int, int]]]: ...
    def rounds(self) -> str: ...
    def quality(self) -> str: ...
    def votes(self) -> NDArray[np.int64] | None: ...
    def graph(self) -> str: ...
    def warnings(self) -> list[str]: ...
    def report(
        self,
        path: str | PathLike[str],
        title: str,
        force: bool,
        tsne: bool,
        ids: Sequence[str] | None = None,
        truth: Sequence[str] | None = None,
    ) -> None: ...

class Predictor:
    @staticmethod
    def of_labelled(
        x: NDArray[np.float32], labels: NDArray[np.uint32], classes: Sequence[str], settings: dict[str, Any]
    ) -> Predictor: ...
    @staticmethod
    def from_parts(
        base: NDArray[np.float32],
        anchors: NDArray[np.float32],
        first_target: int,
        probabilities: NDArray[np.float32],
        candidates: Sequence[bool],
        settings: dict[str, Any],
    ) -> Predictor: ...
    @property
    def first_target(self) -> int: ...
    def predict(self, x: NDArray[np.float32], settings: dict[str, Any]) -> tuple[_Answers, NDArray[np.float32]]: ...
    def distributions(self) -> NDArray[np.float32]: ...
    def parts(
        self,
    ) -> tuple[NDArray[np.float32], NDArray[np.float32], int, NDArray[np.float32], list[bool]]: ...
