package journal_test

import (
	"encoding/base64"
	"net/http"
	"path/filepath"
	"strings"
	"testing"

	"github.com/oncehttp/oncehttp/internal/command/commandtest"
	"github.com/oncehttp/oncehttp/internal/command/terminal"
)

// TestVerifyWithoutTheKey: a journal whose seal key is missing, another one, or too much is not called damaged, and nobody is told to put a backup in its place.
func TestVerifyWithoutTheKey(t *testing.T) {
	t.Parallel()
	s := commandtest.Serve(t, func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusCreated) })
	key := func(id, letter string) string {
		return "@" + commandtest.WriteFile(t, "keys", id+":"+base64.StdEncoding.EncodeToString([]byte(strings.Repeat(letter, 32)))+"\n")
	}
	mine, same, other := key("k1", "a"), key("k1", "b"), key("k2", "a")
	file := commandtest.WriteFile(t, "in.csv", commandtest.Orders(3))
	journals := map[string][]string{"plain": nil, "sealed": {"--seal-key", mine}}
	for name, keys := range journals {
		at := filepath.Join(t.TempDir(), name+".db")
		commandtest.Run(t, append([]string{"batch", file, "--url", s.URL, "--key", commandtest.OrderKey, "--journal", at, "--new-journal"}, keys...)...).Want(t, terminal.ExitOK)
		verify := func(keys ...string) commandtest.Ran {
			return commandtest.Run(t, append([]string{"journal", "verify", "--journal", at}, keys...)...)
		}
		if got := verify(keys...).Want(t, terminal.ExitOK); got.Out != "sound: 3 operations\n" {
			t.Errorf("%s: %s", name, got.Out)
		}
		wrong := [][]string{{"--seal-key", same}, {"--seal-key", other}}
		if name == "sealed" {
			wrong = append(wrong, nil)
		}
		for _, keys := range wrong {
			if got := verify(keys...).Want(t, terminal.ExitUsage); strings.Contains(got.Out+got.Err, "damaged") || strings.Contains(got.Err, "backup") || !strings.Contains(got.Err, "seal") {
				t.Errorf("%s with %q: %s%s", name, keys, got.Out, got.Err)
			}
		}
	}
}
