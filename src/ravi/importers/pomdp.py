"""pomdp.org's file format (Cassandra): an MDP, or the MDP under a POMDP, by discount, states, actions, T and R.

    discount: 0.95                      values: reward          (or cost)
    states: low high                    actions: 2              (names, or how many)
    start: low                          (or probabilities, uniform, start include: / exclude: states)
    T: 0 : low : high 0.3               T: 1 : low  0.2 0.8     T: * identity        (or uniform, or a matrix)
    T: 0 : high reset                   (a row that is the start)
    R: 0 : low : * 5.0                  R: 1 : low : high 2.5

Later lines of T and R replace earlier ones, `*` stands for all; without start, all states are as likely. Every action
needs a row of T in every state. Where observations are declared, the file is a POMDP: what is read is the MDP in which
the state is seen, and a reward that depends on an observation is an error.
"""

import os
import re
from typing import Any, NamedTuple

import numpy as np

from ravi import validation
from ravi.importers.imported import Imported, Lines, is_whole, mdp_of_entries
from ravi.validation import InputError, require_memory

WORDS = ("discount", "values", "states", "actions", "observations", "start", "T", "O", "R")
BY_OBSERVATION = "; rewards by observation are not read, but `R: action : state : successor : * number` is"


class Token(NamedTuple):
    line: int
    text: str


def pomdp(path: str | os.PathLike[str], *, discount: float | None = None, renormalise: bool = False) -> Imported:
    """The MDP of a file; it says its discount, unless another is given."""
    lines = Lines(path)
    read = _Reader(lines)
    read.all()
    gamma = read.own_discount() if discount is None else discount
    X, A = len(read.states), len(read.actions)
    P, earned = read.P, -read.earned if read.cost else read.earned
    x, a, y = np.nonzero(P)
    entries = (x, a, y, P[x, a, y], earned[x, a, y])
    return mdp_of_entries(
        entries, X, A, gamma, read.first(), name=lines.path.name, states=read.states, actions=read.actions,
        renormalise=renormalise, pairs=np.ones((X, A), bool),
        where=lambda x, a: f"{lines.path}: T: {read.actions[a]} : {read.states[x]}",
    )  # fmt: skip


class _Reader:
    """The file, word by word: where lines end says nothing in this format."""

    def __init__(self, lines: Lines) -> None:
        self.lines, self.place = lines, 0
        self.tokens = [Token(number, word) for number, text in lines.rows for word in re.findall(r":|[^\s:]+", text)]
        self.discount: Token | None = None
        self.cost = self.observed = self.resets = False
        self.states: list[str] = []
        self.actions: list[str] = []
        self.start: Any = None
        self.P: Any = None
        self.earned: Any = None

    def all(self) -> None:
        while self.place < len(self.tokens):
            line, word = self.take()
            if word not in WORDS:
                near = validation.did_you_mean(word, WORDS)
                raise self.lines.wrong(
                    line, f"{word!r} begins no entry; an entry begins with one of {', '.join(WORDS)}.{near}"
                )
            if word == "start":
                self._may_start(line)
            if word == "start" and self.peek() in ("include", "exclude"):
                self._chosen(self.take().text)
                continue
            self.colon(line, word)
            if word in "TRO":
                self._sized(line, word)
            self._read(line, word)
        for name in ("states", "actions"):
            if not getattr(self, name):
                raise InputError(f"{self.lines.path} has no line `{name}: ...`: their names, or how many")
        self._sized(0, "T")

    # ---- words

    def peek(self) -> str:
        return self.tokens[self.place].text if self.place < len(self.tokens) else ""

    def take(self) -> Token:
        if self.place == len(self.tokens):
            raise self.lines.wrong(self.tokens[-1].line, "the file ends in the middle of an entry")
        self.place += 1
        return self.tokens[self.place - 1]

    def colon(self, line: int, after: str) -> None:
        if self.peek() != ":":
            raise self.lines.wrong(line, f"after {after!r} stands {self.peek()!r}, not a colon")
        self.take()

    def words_ahead(self) -> list[Token]:
        """The words before the next entry."""
        end = self.place
        while end < len(self.tokens):
            after = self.tokens[end + 1].text if end + 1 < len(self.tokens) else ""
            if self.tokens[end].text in WORDS and after in (":", "include", "exclude"):
                break
            end += 1
        return self.tokens[self.place : end]

    def words(self) -> list[Token]:
        found = self.words_ahead()
        self.place += len(found)
        return found

    def numbers(self, many: int, line: int, what: str) -> Any:
        found = [self.lines.number(token.line, token.text, what) for token in self.words()]
        if len(found) != many:
            hint = BY_OBSERVATION if self.observed and what.endswith("R") else ""
            raise self.lines.wrong(line, f"{what} has {len(found)} numbers, not {many}{hint}")
        return np.array(found)

    def which(self, names: list[str], what: str) -> Any:
        """The numbers that a name, a number or * stands for."""
        line, word = self.take()
        if word == "*":
            return np.arange(len(names))
        if word in names:
            return np.array([names.index(word)])
        if is_whole(word) and int(word) < len(names):
            return np.array([int(word)])
        known = f"{', '.join(names[:8])}{', ...' if len(names) > 8 else ''}"
        raise self.lines.wrong(line, f"there is no {what} {word!r}; there are {known}")

    # ---- entries

    def _read(self, line: int, word: str) -> None:
        match word:
            case "discount":
                self.discount = self.take()
            case "values":
                self._values()
            case "states" | "actions":
                if getattr(self, word):
                    raise self.lines.wrong(line, f"{word} are declared a second time; once is enough")
                setattr(self, word, self._names(line, word))
            case "start":
                self._start(line)
            case "T":
                self._entry(line, self.P, "T")
            case "R":
                self._entry(line, self.earned, "R")
            case _:  # observations and O: what is seen of a state changes no MDP
                self.observed = True
                self.words()

    def _values(self) -> None:
        number, word = self.take()
        if word not in ("reward", "cost"):
            raise self.lines.wrong(number, f"values is {word!r}, not reward or cost")
        self.cost = word == "cost"

    def _names(self, line: int, what: str) -> list[str]:
        words = [token.text for token in self.words()]
        if len(words) == 1 and is_whole(words[0]):
            return [str(i) for i in range(self.lines.whole(line, words[0], f"the number of {what}", 1, 2**20))]
        if not words or len(set(words)) < len(words):
            raise self.lines.wrong(line, f"{what} has {'the same name twice' if words else 'no names'}")
        return words

    def own_discount(self) -> float:
        if self.discount is None:
            raise InputError(f"{self.lines.path} has no line `discount: 0.95`")
        return float(self.lines.checked(self.discount.line, validation.probability, self.discount.text, "discount"))

    def first(self) -> Any:
        """nu_0."""
        X = len(self.states)
        return np.full(X, 1 / X) if self.start is None else self.start

    def _may_start(self, line: int) -> None:
        if not self.states:
            raise self.lines.wrong(line, "start stands before states are declared")
        if self.resets:
            raise self.lines.wrong(line, "start stands after a row of T that is `reset`, which needs it")

    def _start(self, line: int) -> None:
        words = self.words()
        X, single = len(self.states), words[0].text if len(words) == 1 else ""
        if single == "uniform":
            self.start = np.full(X, 1 / X)
        elif single in self.states or (is_whole(single) and int(single) < X > 1):
            self.start = validation.distribution(self.states.index(single) if single in self.states else int(single), X)
        else:
            found = np.array([self.lines.number(token.line, token.text, "start") for token in words])
            if len(found) != X:
                raise self.lines.wrong(line, f"start has {len(words)} numbers, but there are {X} states")
            self.start = self.lines.checked(line, validation.sums_to_one, found, "start")

    def _chosen(self, word: str) -> None:
        """start include: or exclude: some states, each as often."""
        line = self.tokens[self.place - 1].line
        self.colon(line, f"start {word}")
        named = np.zeros(len(self.states), bool)
        for _ in range(len(self.words_ahead())):
            named[self.which(self.states, "state")] = True
        among = named if word == "include" else ~named
        if not among.any():
            raise self.lines.wrong(line, f"start {word} leaves no state to begin in")
        self.start = among / among.sum()

    def _sized(self, line: int, word: str) -> None:
        """Space for T and R, once states and actions are known."""
        if self.P is not None:
            return
        X, A = len(self.states), len(self.actions)
        if not X or not A:
            raise self.lines.wrong(line, f"{word} stands before states and actions are declared")
        require_memory(16 * X * X * A, f"{self.lines.path} with {X} states and {A} actions", "their number")
        self.P, self.earned = np.zeros((X, A, X)), np.zeros((X, A, X))

    def _entry(self, line: int, table: Any, what: str) -> None:
        """T: or R: action [: state [: successor [: *]]], then what is left of it."""
        a = self.which(self.actions, "action")
        if self.peek() != ":":
            table[:, a] = self._matrix(line, what)[:, None]
            return
        self.take()
        x = self.which(self.states, "state")
        if self.peek() != ":":
            table[np.ix_(x, a)] = self._row(line, what)
            return
        self.take()
        y = self.which(self.states, "state")
        if self.peek() == ":" and what == "R":
            self.take()
            number, word = self.take()
            if word != "*":
                raise self.lines.wrong(number, f"the reward depends on observation {word!r}; `*` is read, for any")
        token = self.take()
        if what == "R" and re.match(r"[-+.]?[0-9]", self.peek()):
            raise self.lines.wrong(line, f"R of a transition has more than one number{BY_OBSERVATION}")
        value = self.lines.probability(*token) if what == "T" else self.lines.number(*token, "the reward")
        table[np.ix_(x, a, y)] = value

    def _word(self, word: str) -> bool:
        if self.peek() != word:
            return False
        self.take()
        return True

    def _row(self, line: int, what: str) -> Any:
        X = len(self.states)
        if self._word("uniform"):
            return np.full(X, 1 / X)
        if what == "T" and self._word("reset"):
            self.resets = True
            return self.first()
        return self.numbers(X, line, f"a row of {what}")

    def _matrix(self, line: int, what: str) -> Any:
        X = len(self.states)
        if self._word("uniform"):
            return np.full((X, X), 1 / X)
        if self._word("identity"):
            return np.eye(X)
        return self.numbers(X * X, line, f"a matrix of {what}").reshape(X, X)
