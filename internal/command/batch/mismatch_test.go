package batch_test

import (
	"strings"
	"testing"

	"github.com/oncehttp/oncehttp/internal/command/commandtest"
	"github.com/oncehttp/oncehttp/mockserver"
)

// TestMismatchHasNoEarlierState: the line of a row whose key the API has for another request does not name the state before its send.
func TestMismatchHasNoEarlierState(t *testing.T) {
	t.Parallel()
	url := commandtest.StartMock(t, mockserver.Config{}).URL() + "/payments"
	for i, amount := range []string{"10.00", "11.00"} {
		file := commandtest.WriteFile(t, "in.csv", "id,amount\n1,"+amount+"\n")
		got := commandtest.Run(t, "batch", file, "--url", url, "--key", "o:{id}", "--journal", file+".db")
		if mismatched := strings.Contains(got.Out, `"result":"mismatch"`); mismatched != (i == 1) || strings.Contains(got.Out, `"state":"pending"`) {
			t.Errorf("%s: %s", amount, got.Out)
		}
	}
}
