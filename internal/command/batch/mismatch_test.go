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

// TestMismatchOfTheURL: a --url that is another one in each run makes another request of each row, and the summary names it. A changed row has no such words.
func TestMismatchOfTheURL(t *testing.T) {
	t.Parallel()
	url := commandtest.StartMock(t, mockserver.Config{}).URL() + "/payments"
	file := commandtest.WriteFile(t, "in.csv", "id,amount\n1,10.00\n2,11.00\n")
	run := func(url, amount string) string {
		t.Helper()
		changed := commandtest.WriteFile(t, "in.csv", "id,amount\n1,"+amount+"\n2,11.00\n")
		return commandtest.Run(t, "batch", changed, "--url", url, "--key", "o:{id}", "--journal", file+".db").Err
	}
	const words = "only the path or query differs"
	if got := run(url+"?run=1", "10.00"); strings.Contains(got, words) {
		t.Errorf("the first run: %s", got)
	}
	if got := run(url+"?run=2", "10.00"); strings.Count(got, words) != 1 || !strings.Contains(got, "2 mismatch") || !strings.Contains(got, "give --url as the first run had it") {
		t.Errorf("another --url: %s", got)
	}
	if got := run(url+"?run=1", "12.00"); strings.Contains(got, words) {
		t.Errorf("another amount: %s", got)
	}
}
