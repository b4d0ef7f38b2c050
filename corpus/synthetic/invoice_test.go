package synthetic

import (
	"regexp"
	"testing"
)

func TestAppendInvoiceLooksLikeBOLT11(t *testing.T) {
	got := string(appendInvoice(nil, newRandStream([32]byte{3}), 1_780_000_000, "21"))
	if !regexp.MustCompile(`^lnbc210n1[02-9ac-hj-np-z]{7}p[02-9ac-hj-np-z]{54}h[02-9ac-hj-np-z]{54}[02-9ac-hj-np-z]{110}$`).MatchString(got) {
		t.Errorf("invoice is %s", got)
	}
}
