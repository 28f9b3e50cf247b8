package sign_test

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/oncehttp/oncehttp"
	"github.com/oncehttp/oncehttp/mockserver"
	"github.com/oncehttp/oncehttp/persist/bolt"
	"github.com/oncehttp/oncehttp/persist/memory"
)

// TestCapturedRequestIsRefused: an honest retry, signed anew under the same key, passes and has no second effect; what
// was captured is refused when it is played again, at once and later, as it was and under another key.
func TestCapturedRequestIsRefused(t *testing.T) {
	t.Parallel()
	for name, scheme := range schemes(t) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			script := []mockserver.Fault{{Kind: mockserver.AnswerAfter}, {Kind: mockserver.DropAfter}} // two effects, if keys did not count
			cfg := mockserver.Config{Verify: scheme.verify, Caller: oneCaller, Script: script, RequireKey: true}
			bubble(t, cfg, func(t *testing.T, server *mockserver.Server, url string, tap *wiretap) {
				client := newClient(t, memory.New(), tap, scheme.authorize)
				resp, err := client.DoKey(pay(t, t.Context(), url), "order-7")
				fatal(t, err)
				fatal(t, resp.Body.Close())
				if resp.StatusCode != http.StatusCreated || len(tap.sent) != 3 || server.Ledger().Effects("order-7") != 1 {
					t.Fatalf("status %d after %d sends with %d effects, want 201 after 3 with 1", resp.StatusCode, len(tap.sent), server.Ledger().Effects("order-7"))
				}
				differ(t, tap.sent)
				for _, wait := range []time.Duration{0, 4 * time.Minute, 2 * time.Minute, time.Hour} {
					time.Sleep(wait)
					for i, c := range tap.sent {
						if status := c.again(t, tap.next, "", ""); status != http.StatusUnauthorized {
							t.Errorf("request %d played again %v later: %d, want 401", i+1, wait, status)
						}
					}
				}
				if total := server.Ledger().Snapshot().Effects; total != 1 {
					t.Errorf("%d effects, want 1", total)
				}
				fatal(t, client.Close())
			})
		})
	}
}

// differ holds attempts to each other: key, body and the rest are the same, and what signs them is not.
func differ(t *testing.T, sent []captured) {
	t.Helper()
	first := sent[0]
	signing := []string{"X-Timestamp", "X-Nonce", "X-Signature", "X-Auth", "Authorization", "Signature-Input", "Signature"}
	for _, c := range sent[1:] {
		if c.header.Get("Idempotency-Key") != "order-7" || string(c.body) != payment || c.method != first.method || c.url != first.url {
			t.Errorf("another request was sent: %s %s, key %q, body %q", c.method, c.url, c.header.Get("Idempotency-Key"), c.body)
		}
		same := true
		for name := range c.header {
			changed := c.header.Get(name) != first.header.Get(name)
			ours := strings.Contains(strings.Join(signing, " "), name)
			same = same && !changed
			if changed && !ours {
				t.Errorf("the header %s changed", name)
			}
		}
		if same {
			t.Error("two attempts have the same signature")
		}
	}
}

// TestChangedRequestIsRefused: who has captured a request that did not arrive cannot send it in another form.
func TestChangedRequestIsRefused(t *testing.T) {
	t.Parallel()
	for name, scheme := range schemes(t) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			cfg := mockserver.Config{Verify: scheme.verify}
			bubble(t, cfg, func(t *testing.T, server *mockserver.Server, url string, tap *wiretap) {
				req := pay(t, t.Context(), url)
				req.Header.Set("Idempotency-Key", "order-7")
				fatal(t, scheme.authorize(req))
				c := captured{method: req.Method, url: req.URL.String(), header: req.Header, body: []byte(payment)}
				change := func(what string, f func(*captured)) {
					other := c
					other.header = c.header.Clone()
					f(&other)
					if status := other.again(t, tap.next, "", ""); status != http.StatusUnauthorized {
						t.Errorf("with another %s: %d, want 401", what, status)
					}
				}
				change("body", func(c *captured) { c.body = []byte(strings.Replace(payment, "42", "99", 1)) })
				change("method", func(c *captured) { c.method = "PATCH" })
				change("path", func(c *captured) { c.url = strings.Replace(c.url, "/payments", "/refunds", 1) })
				change("query", func(c *captured) { c.url += "&shop=8" })
				if name != "WeChat Pay" { // whose key is in the body
					change("key", func(c *captured) { c.header.Set("Idempotency-Key", "order-8") })
					change("key, none", func(c *captured) { c.header.Del("Idempotency-Key") })
					change("key, two", func(c *captured) { c.header.Add("Idempotency-Key", "order-8") })
				}
				for signing := range c.header {
					if signing != "Idempotency-Key" && signing != "Content-Type" {
						change(signing+", none", func(c *captured) { c.header.Del(signing) })
						change(signing, func(c *captured) {
							value := strings.NewReplacer("0", "9", "1", "0", "2", "1", "3", "2", "4", "3", "5", "4", "6", "5", "7", "6", "8", "7", "9", "8").Replace(c.header.Get(signing))
							if value == c.header.Get(signing) {
								t.Fatalf("nothing of the header %s can be changed: %s", signing, value)
							}
							c.header.Set(signing, value)
						})
					}
				}
				if status := c.again(t, tap.next, "", ""); status != http.StatusCreated {
					t.Errorf("as it was: %d, want 201: what was refused must not use up its nonce", status)
				}
				if total := server.Ledger().Snapshot().Effects; total != 1 {
					t.Errorf("%d effects, want 1", total)
				}
			})
		})
	}
}

// TestResumeSignsAnew: a process begins an operation and dies; ten minutes later another one, with the same file,
// resumes it under a signature of its own. The server takes it, and has had one effect. No file holds a signature.
func TestResumeSignsAnew(t *testing.T) {
	t.Parallel()
	for name, scheme := range schemes(t) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			file := filepath.Join(t.TempDir(), "journal.db")
			hang := []mockserver.Fault{{Kind: mockserver.HangAfter}}
			bubble(t, mockserver.Config{Verify: scheme.verify, Caller: oneCaller, Script: hang}, func(t *testing.T, server *mockserver.Server, url string, tap *wiretap) {
				journal, err := bolt.Open(file, bolt.Options{})
				fatal(t, err)
				client := newClient(t, journal, tap, scheme.authorize)
				ctx, cancel := context.WithTimeout(t.Context(), time.Second)
				defer cancel()
				if _, err := client.DoKey(pay(t, ctx, url), "order-7"); !errors.Is(err, oncehttp.ErrOutcomeUnknown) {
					t.Fatalf("the first life: %v, want ErrOutcomeUnknown", err)
				}
				fatal(t, client.Close())
				fatal(t, journal.Close())

				time.Sleep(10 * time.Minute) // whatever was signed is too old by now
				journal, err = bolt.Open(file, bolt.Options{})
				fatal(t, err)
				client = newClient(t, journal, tap, scheme.authorize)
				for result, err := range client.Resume(t.Context()) {
					if err != nil || result.Outcome != oncehttp.OutcomeConfirmed {
						t.Errorf("the second life: %v, %v, want confirmed", result.Outcome, err)
					}
				}
				if len(tap.sent) != 2 || server.Ledger().Effects("order-7") != 1 {
					t.Errorf("%d sends, %d effects; want 2 and 1", len(tap.sent), server.Ledger().Effects("order-7"))
				}
				differ(t, tap.sent)
				fatal(t, client.Close())
				fatal(t, journal.Close())
				holdsNone(t, file, tap.sent)
			})
		})
	}
}

// holdsNone searches a file for what signed the requests.
func holdsNone(t *testing.T, file string, sent []captured) {
	t.Helper()
	raw, err := os.ReadFile(file)
	fatal(t, err)
	if !bytes.Contains(raw, []byte(payment)) {
		t.Fatal("the search finds nothing: the body is not in the file")
	}
	for _, c := range sent {
		for name, lines := range c.header {
			if name == "Idempotency-Key" || name == "Content-Type" || name == "User-Agent" {
				continue
			}
			if bytes.Contains(raw, []byte(lines[0])) || bytes.Contains(raw, []byte(name)) {
				t.Errorf("the journal holds the header %s", name)
			}
		}
	}
}

// TestServerOfItsOwn: a server that reads the layout by hand, without this package, comes to the same signature.
func TestServerOfItsOwn(t *testing.T) {
	t.Parallel()
	byHand := func(req *http.Request, body []byte) error {
		h := hmac.New(sha256.New, secret)
		for _, text := range []string{req.Header.Get("X-Timestamp"), req.Header.Get("X-Nonce"), "POST", "/payments?shop=7&x=%2F", "order-7", payment} {
			if text != payment {
				text += "\n"
			}
			h.Write([]byte(text))
		}
		if hex.EncodeToString(h.Sum(nil)) != req.Header.Get("X-Signature") {
			return errors.New("another signature")
		}
		return nil
	}
	authorize, err := hmacLayout.Authorize()
	fatal(t, err)
	bubble(t, mockserver.Config{Verify: byHand}, func(t *testing.T, _ *mockserver.Server, url string, tap *wiretap) {
		client := newClient(t, memory.New(), tap, authorize)
		resp, err := client.DoKey(pay(t, t.Context(), url), "order-7")
		fatal(t, err)
		fatal(t, resp.Body.Close())
		if resp.StatusCode != http.StatusCreated {
			t.Errorf("status %d, want 201", resp.StatusCode)
		}
		fatal(t, client.Close())
	})
}

// TestSignerThatReadsTheBody: Authorize may read Body and GetBody to their ends, and close both; what is sent is the
// recorded body, on each attempt.
func TestSignerThatReadsTheBody(t *testing.T) {
	t.Parallel()
	read := 0
	greedy := func(req *http.Request) error {
		again, err := req.GetBody()
		if err != nil {
			return err
		}
		for _, body := range []io.ReadCloser{req.Body, again} {
			text, err := io.ReadAll(body)
			if err = errors.Join(err, body.Close()); err != nil || string(text) != payment {
				t.Errorf("Authorize reads %q, %v", text, err)
			}
			read++
		}
		return nil
	}
	script := []mockserver.Fault{{Kind: mockserver.Answer}}
	bubble(t, mockserver.Config{Script: script}, func(t *testing.T, _ *mockserver.Server, url string, tap *wiretap) {
		client := newClient(t, memory.New(), tap, greedy)
		resp, err := client.DoKey(pay(t, t.Context(), url), "order-7")
		fatal(t, err)
		fatal(t, resp.Body.Close())
		if len(tap.sent) != 2 || read != 4 {
			t.Fatalf("%d sends, %d bodies were read; want 2 and 4", len(tap.sent), read)
		}
		for _, c := range tap.sent {
			if string(c.body) != payment {
				t.Errorf("%q was sent", c.body)
			}
		}
		fatal(t, client.Close())
	})
}

// TestRequestThatIsNotJournaled: a PUT without a key and a GET are signed too, the PUT if its body can be read twice.
func TestRequestThatIsNotJournaled(t *testing.T) {
	t.Parallel()
	scheme := schemes(t)["RFC 9421, ed25519"]
	bubble(t, mockserver.Config{Verify: scheme.verify}, func(t *testing.T, server *mockserver.Server, url string, tap *wiretap) {
		client := newClient(t, memory.New(), tap, scheme.authorize)
		send := func(method, body string, once bool) (*http.Response, error) {
			req, err := http.NewRequest(method, url+"/payments/p1", strings.NewReader(body))
			fatal(t, err)
			if once {
				req.GetBody = nil
			}
			return client.Do(req)
		}
		for _, method := range []string{"PUT", "GET"} {
			resp, err := send(method, map[string]string{"PUT": payment}[method], false)
			fatal(t, err)
			fatal(t, resp.Body.Close())
			if resp.StatusCode == http.StatusUnauthorized || tap.sent[len(tap.sent)-1].header.Get("Signature") == "" {
				t.Errorf("%s: status %d", method, resp.StatusCode)
			}
		}
		if tap.sent[0].replayable {
			t.Error("net/http can send the PUT again by itself, under a signature that was used")
		}
		sends := len(tap.sent)
		if _, err := send("PUT", payment, true); err == nil || !strings.Contains(err.Error(), "GetBody") || len(tap.sent) != sends {
			t.Errorf("a body that can be read once: %v after %d sends", err, len(tap.sent)-sends)
		}
		fatal(t, client.Close())
	})
}

// TestResumeWithoutAuthorize: a process that does not sign gets a 401, which settles nothing after an attempt that took
// effect; the next one that signs finds the answer.
func TestResumeWithoutAuthorize(t *testing.T) {
	t.Parallel()
	scheme := schemes(t)["hmac over the body"]
	hang := []mockserver.Fault{{Kind: mockserver.HangAfter}}
	bubble(t, mockserver.Config{Verify: scheme.verify, Script: hang}, func(t *testing.T, server *mockserver.Server, url string, tap *wiretap) {
		journal := memory.New()
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		life := func(authorize func(*http.Request) error, run func(*oncehttp.Client)) {
			client := newClient(t, journal, tap, authorize)
			run(client)
			fatal(t, client.Close())
		}
		life(scheme.authorize, func(client *oncehttp.Client) {
			if _, err := client.DoKey(pay(t, ctx, url), "order-7"); !errors.Is(err, oncehttp.ErrOutcomeUnknown) {
				t.Errorf("the first life: %v, want ErrOutcomeUnknown", err)
			}
		})
		life(nil, func(client *oncehttp.Client) {
			for result, err := range client.Resume(t.Context()) {
				if result.Outcome != oncehttp.OutcomeUnknown || !errors.Is(err, oncehttp.ErrOutcomeUnknown) {
					t.Errorf("without Authorize: %v, %v; want unknown", result.Outcome, err)
				}
			}
		})
		time.Sleep(time.Hour)
		life(scheme.authorize, func(client *oncehttp.Client) {
			results := 0
			for result, err := range client.Resume(t.Context()) {
				results++
				if err != nil || result.Outcome != oncehttp.OutcomeConfirmed {
					t.Errorf("the third life: %v, %v; want confirmed", result.Outcome, err)
				}
			}
			if results != 1 || server.Ledger().Effects("order-7") != 1 {
				t.Errorf("%d results, %d effects; want 1 and 1", results, server.Ledger().Effects("order-7"))
			}
		})
	})
}
