package operation_test

import (
	"testing"

	"github.com/oncehttp/oncehttp/internal/operation"
	"github.com/oncehttp/oncehttp/persist"
)

func TestMayAskAgain(t *testing.T) {
	t.Parallel()
	for status, done := range map[int]bool{200: true, 201: true, 202: true, 303: true, 400: false, 402: false, 409: false} {
		for _, stored := range []bool{true, false} {
			if got := operation.MayAskAgain(&persist.Answer{Status: status, Stored: stored}); got != (done && stored) {
				t.Errorf("%d, stored %t: %t", status, stored, got)
			}
		}
	}
	if !operation.MayAskAgain(&persist.Answer{Status: 409, Stored: true, AlreadyDone: true}) {
		t.Error("what was already done may not be asked for again")
	}
}
