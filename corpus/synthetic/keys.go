package synthetic

import (
	"context"
	"fmt"

	"relaybench/corpus"
)

// walletCount is how many payment services sign the zap receipts of a synthetic corpus (NIP-57).
const walletCount = 4

// syntheticKeys are the keys of one synthetic corpus: those of the authors, then those of the
// payment services, then of strangers, who are followed and publish nothing.
type syntheticKeys struct {
	secret  []corpus.SecretKey
	hex     []string // public keys as tags hold them, shared by all tags
	authors int
}

func newSyntheticKeys(ctx context.Context, seed [32]byte, authors int) (*syntheticKeys, error) {
	// Strangers fill contact lists where the corpus has too few authors to follow.
	strangers := max(0, maxFollowCandidates-(authors-1))
	n := authors + walletCount + strangers
	k := &syntheticKeys{secret: make([]corpus.SecretKey, n), hex: make([]string, n), authors: authors}
	err := corpus.TryInParallel(ctx, n, func(i int) (err error) {
		if k.secret[i], err = corpus.NewSecretKey(derive(seed, "key", i)); err != nil {
			return fmt.Errorf("deriving key %d: %w", i, err)
		}
		k.hex[i] = k.secret[i].PubKey.String()
		return nil
	})
	return k, err
}

// wallet is the index of the payment service that an author receives zaps through.
func (k *syntheticKeys) wallet(author int) int { return k.authors + author%walletCount }
