// Verification: which tokens a step commits, given a draft and the target's logits for each of its rows.
//
// WalkDraft serves both verify modes. Row i holds the target's logits after the first i draft tokens; there is one more
// row than draft tokens. The target draws a token from each row, and this token is committed. As long as it is the same
// as the draft token, the next row is valid too. So each step commits at least one token, and every committed token was
// drawn from the target's row.
#pragma once

#include <cstdint>
#include <span>

#include "base/token.h"
#include "spec/draft.h"

namespace outrider {

// `draw(row)` returns the target's token for that row; `commit(row, token)` takes it and returns whether to go on (no
// after the end of text and if there was no token to draw). Returns how many draft tokens were accepted.
template <typename DrawRow, typename CommitToken>
int WalkDraft(std::span<const DraftToken> draft, DrawRow draw, CommitToken commit) {
  for (int row = 0;; ++row) {
    const Token token = draw(row);
    const bool right = row < static_cast<int>(draft.size()) && token == draft[static_cast<size_t>(row)].token;
    const bool go_on = commit(row, token);
    if (!right) return row;
    if (!go_on) return row + 1;
  }
}

// Rejection sampling (Leviathan et al. 2023) for one row: accepts `drafted` with probability min(1, p/q), else draws
// from max(0, p - q). `target` is p and `draft` is q, each normalised, a token at most once; an empty `draft` means
// q(drafted) = 1. The two coins, uniform in (0, 1), must be independent of each other and of how `drafted` was drawn:
// the shared Gumbel noise of match mode is not. Returns `drafted` exactly if it was accepted. kNoToken if `target` is
// empty.
Token DrawByRejection(std::span<const TokenProbability> target, Token drafted, std::span<const TokenProbability> draft,
                      double accept_coin, double residual_coin);

}  // namespace outrider
