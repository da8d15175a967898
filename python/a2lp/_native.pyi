from os import PathLike
from typing import Any, Callable, Dict, List, Optional, Sequence, Tuple

import numpy as np
from numpy.typing import NDArray

__version__: str

_Answers = Tuple[NDArray[np.int64], NDArray[np.float32], NDArray[np.float32], List[str]]
_Graph = Tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.float32]]
_Callback = Callable[[str, int, int], Any]

def check_settings(settings: Dict[str, Any]) -> None: ...
def fit(
    x: Sequence[NDArray[np.float32]],
    order: NDArray[np.int64],
    labels: NDArray[np.uint32],
    classes: Sequence[str],
    settings: Dict[str, Any],
    graph: Optional[_Graph] = None,
    callback: Optional[_Callback] = None,
) -> Fitted: ...
def neighbor_graph(
    x: NDArray[np.float32], settings: Dict[str, Any], symmetric: bool, callback: Optional[_Callback] = None
) -> Tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.float32], str, Optional[str]]: ...
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
    def anchors(self) -> Tuple[NDArray[np.float32], List[Tuple[int, int, int]]]: ...
    def rounds(self) -> str: ...
    def graph(self) -> str: ...
    def warnings(self) -> List[str]: ...
    def report(
        self,
        path: str | PathLike[str],
        title: str,
        force: bool,
        tsne: bool,
        ids: Optional[Sequence[str]] = None,
        truth: Optional[Sequence[str]] = None,
    ) -> None: ...

class Predictor:
    @staticmethod
    def of_labelled(
        x: NDArray[np.float32], labels: NDArray[np.uint32], classes: Sequence[str], settings: Dict[str, Any]
    ) -> Predictor: ...
    @staticmethod
    def from_parts(
        base: NDArray[np.float32],
        anchors: NDArray[np.float32],
        first_target: int,
        probabilities: NDArray[np.float32],
        candidates: Sequence[bool],
        settings: Dict[str, Any],
    ) -> Predictor: ...
    @property
    def first_target(self) -> int: ...
    def predict(self, x: NDArray[np.float32], settings: Dict[str, Any]) -> Tuple[_Answers, NDArray[np.float32]]: ...
    def distributions(self) -> NDArray[np.float32]: ...
    def parts(
        self,
    ) -> Tuple[NDArray[np.float32], NDArray[np.float32], int, NDArray[np.float32], List[bool]]: ...
