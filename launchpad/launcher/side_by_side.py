"""Several conversations at once, told one by one in the calling thread."""

import queue
import threading
from collections.abc import Callable
from typing import Generic, TypeVar

T = TypeVar("T")

Tell = Callable[[T], None]

# How much may wait to be taken before the conversations have to.
_SIZE = 64


class SideBySide(Generic[T]):
    """Threads, one for each piece of work, and the queue in which they tell what happens.

    Work must look at ``is_over`` at least a few times a second, and return once it is true.
    """

    def __init__(self) -> None:
        self._told: queue.Queue[T] = queue.Queue(_SIZE)
        self._over = threading.Event()
        self._threads: list[threading.Thread] = []

    @property
    def is_over(self) -> bool:
        """Nobody will take anything any more."""
        return self._over.is_set()

    def start(self, work: Callable[[Tell[T]], None], fault: Callable[[Exception], T]) -> None:
        """Begin ``work`` in a thread of its own; what it must not raise is told as a ``fault``."""

        def run() -> None:
            try:
                work(self._told.put)
            except Exception as error:  # noqa: BLE001 # or the others would wait for it for ever
                self._told.put(fault(error))

        thread = threading.Thread(target=run, daemon=True)
        self._threads.append(thread)
        thread.start()

    def take(self, timeout: float | None = None) -> T | None:
        """What is told next; None once ``timeout`` seconds (None: no limit) passed without."""
        try:
            return self._told.get(timeout=timeout)
        except queue.Empty:
            return None

    def end(self) -> None:
        """Wait until all work has returned; none of it can be stuck in a full queue."""
        self._over.set()
        for thread in self._threads:
            while thread.is_alive():
                while not self._told.empty():
                    self._told.get()
                thread.join(0.05)
