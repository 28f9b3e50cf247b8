package batch_test

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"github.com/oncehttp/oncehttp"
	"github.com/oncehttp/oncehttp/internal/command/commandtest"
	"github.com/oncehttp/oncehttp/internal/command/terminal"
)

// Where an API takes UUIDs only, or characters that a key spelled from fields has not, one is made of it, always the same;
// a UUID of version 4 can be made of nothing, and stands in a column, as a key in the body does.
func TestBatchKeysThatFit(t *testing.T) {
	t.Parallel()
	const v4 = "6c84fb90-12c4-41e1-840d-725e7d9f9c30"
	text := "order_id,key\no1," + v4 + "\n"
	v5 := string(oncehttp.Key("idemp:order:o1").UUID())
	for name, c := range map[string]struct {
		args []string
		key  string // "" : none is sent
		want string // of stderr
	}{
		"any":                {[]string{"--key", "order:{order_id}"}, "idemp:order:o1", ""},
		"any, made short":    {[]string{"--key", "order:{order_id}", "--key-uuid"}, v5, ""},
		"UUIDs":              {[]string{"--key", "order:{order_id}", "--profile", "lithic"}, v5, ""},
		"no colons":          {[]string{"--key", "order:{order_id}", "--profile", "razorpay-transfers"}, v5, ""},
		"version 4":          {[]string{"--key", "{key}", "--profile", "coinbase"}, v4, ""},
		"version 4, not so":  {[]string{"--key", "order:{order_id}", "--profile", "coinbase"}, "", "takes UUIDs of version 4, which are random; keep one beside each row, and say --key '{column}', or --key-uuid4"},
		"no UUID":            {[]string{"--key", "{order_id}", "--profile", "coinbase"}, "", "a key that is no UUID"},
		"a generation of it": {[]string{"--key", "{key}", "--profile", "coinbase", "--generation", "2"}, "", "a key that is no UUID"},
		"in the body":        {[]string{"--key", "{key}", "--profile", "./plain.json"}, v4, ""},
		"any, a field alone": {[]string{"--key", "{key}"}, "", "has no scope before the first field"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := ""
			s := commandtest.Serve(t, func(w http.ResponseWriter, r *http.Request) {
				for _, name := range []string{"Idempotency-Key", "X-Idempotency-Key", "X-Transfer-Idempotency"} {
					got += r.Header.Get(name)
				}
				var body struct{ Key string }
				if err := json.NewDecoder(r.Body).Decode(&body); err == nil && got == "" {
					got = body.Key
				}
				w.WriteHeader(http.StatusCreated)
			})
			args := append([]string{"batch", commandtest.WriteFile(t, "in.csv", text), "--url", s.URL}, c.args...)
			for i, arg := range args {
				if arg == "./plain.json" {
					args[i] = commandtest.WriteFile(t, "plain.json", `{"name": "plain", "version": "1", "sources": {"docs": {"ref": "seen", "date": "2026-11", "confidence": "primary"}}, "carrier": {"value": {"place": "body", "name": "/key"}, "source": "docs"}}`)
				}
			}
			status := map[bool]int{true: terminal.ExitUsage}[c.key == ""]
			if r := commandtest.Run(t, args...).Want(t, status); got != c.key || !strings.Contains(r.Err, c.want) {
				t.Errorf("key %q, want %q; stderr %s", got, c.key, r.Err)
			}
		})
	}
}
