package webhook_test

import (
	"bytes"
	"compress/gzip"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/oncehttp/oncehttp"
	"github.com/oncehttp/oncehttp/internal/behaviour/clienttest"
	"github.com/oncehttp/oncehttp/internal/behaviour/journaltest"
	"github.com/oncehttp/oncehttp/internal/behaviour/wiretest"
	"github.com/oncehttp/oncehttp/persist"
	"github.com/oncehttp/oncehttp/persist/memory"
)

// lost returns a client with the operation k in doubt, its events, and the handler.
func lost(t *testing.T, change func(*oncehttp.Config)) (*oncehttp.Client, *clienttest.Events, http.Handler) {
	t.Helper()
	events := &clienttest.Events{}
	w := &wiretest.Wire{Replies: []wiretest.Reply{{Err: wiretest.ErrLost}}}
	c, _ := clienttest.New(t, w, func(cfg *oncehttp.Config) {
		stripe(cfg)
		cfg.Observe = events.Observe
		if change != nil {
			change(cfg)
		}
	})
	inDoubt(t, c, "k")
	return c, events, handler(t, c, nil)
}

// unchanged fails unless the operation is as its call left it.
func unchanged(t *testing.T, c *oncehttp.Client) {
	t.Helper()
	if rec := clienttest.Lookup(t, c, "k"); rec.State.Final() || rec.Evidence != nil {
		t.Errorf("state %v, evidence %v; want it unfinished, without evidence", rec.State, rec.Evidence)
	}
}

// TestEventsThatProveNothing: an event with a good signature that says anything else is answered 200, is counted, and changes nothing.
func TestEventsThatProveNothing(t *testing.T) {
	t.Parallel()
	swap := func(old, new string) func(string) string {
		return func(s string) string {
			if !strings.Contains(s, old) {
				panic("nothing to replace: " + old)
			}
			return strings.Replace(s, old, new, 1)
		}
	}
	for name, change := range map[string]func(string) string{
		"another type":                      swap("charge.succeeded", "charge.failed"),
		"a type in other case":              swap("charge.succeeded", "Charge.succeeded"),
		"a type of another endpoint":        swap("charge.succeeded", "payout.created"),
		"another status":                    swap(`"status":"succeeded"`, `"status":"pending"`),
		"no status":                         swap(`"status":"succeeded",`, ``),
		"the test environment":              swap(`"livemode":true`, `"livemode":false`),
		"no environment":                    swap(`"livemode":true,`, ``),
		"the environment as an object":      swap(`"livemode":true`, `"livemode":{"true":true}`),
		"another key":                       swap(`"k"`, `"l"`),
		"a key in other case":               swap(`"k"`, `"K"`),
		"a key with a space":                swap(`"k"`, `"k "`),
		"no key":                            swap(`"k"`, `null`),
		"a key that is a list":              swap(`"k"`, `["k"]`),
		"the member in other case":          swap(`"idempotency_key"`, `"Idempotency_Key"`),
		"two keys":                          swap(`"idempotency_key":"k"`, `"idempotency_key":"x","idempotency_key":"k"`),
		"two types":                         swap(`"type":"charge.succeeded"`, `"type":"charge.failed","type":"charge.succeeded"`),
		"two amounts":                       swap(`"amount":100`, `"amount":1,"amount":100`),
		"an escaped second member":          swap(`"amount":100`, `"amount":100,"amoun\u0074":100`),
		"another amount":                    swap(`"amount":100`, `"amount":101`),
		"an amount with an exponent":        swap(`"amount":100`, `"amount":1e2`),
		"a huge amount":                     swap(`"amount":100`, `"amount":1`+strings.Repeat("0", 100_000)),
		"a huge exponent":                   swap(`"amount":100`, `"amount":1e999999999`),
		"a close float":                     swap(`"amount":100`, `"amount":100.00000000000000000000000001`),
		"an amount as a word":               swap(`"amount":100`, `"amount":"one hundred"`),
		"an amount as an object":            swap(`"amount":100`, `"amount":{}`),
		"a negative amount":                 swap(`"amount":100`, `"amount":-100`),
		"another currency":                  swap(`"eur"`, `"usd"`),
		"another account":                   swap(`"livemode"`, `"account":"acct_2","livemode"`),
		"an account that is a list":         swap(`"livemode"`, `"account":["acct_2"],"livemode"`),
		"text behind it":                    func(s string) string { return s + "{}" },
		"no JSON":                           func(string) string { return "type=charge.succeeded" },
		"nothing":                           func(string) string { return "" },
		"a list":                            func(s string) string { return "[" + s + "]" },
		"null":                              func(string) string { return "null" },
		"no UTF-8":                          swap(`"evt_1"`, "\"evt_\xff\""),
		"a deep one":                        swap(`"evt_1"`, strings.Repeat("[", 10_000)+strings.Repeat("]", 10_000)),
		"a body cut off":                    func(s string) string { return s[:len(s)-1] },
		"a byte order mark":                 func(s string) string { return "\ufeff" + s },
		"compressed, which nothing unpacks": zipped,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c, events, h := lost(t, nil)
			if code := post(t, h, change(charged("k"))); code != http.StatusOK {
				t.Errorf("answered %d, want 200", code)
			}
			unchanged(t, c)
			if told := events.Of(oncehttp.EventUnproved); len(told) != 1 || told[0].Err == nil || told[0].Key != "" {
				t.Errorf("events %+v, want one, with its reason and without a key", told)
			}
		})
	}
}

func zipped(s string) string {
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	_, _ = io.WriteString(w, s)
	_ = w.Close()
	return b.String()
}

// TestEventsThatAgree: other spellings of the same amount, currency and event are the same.
func TestEventsThatAgree(t *testing.T) {
	t.Parallel()
	for name, r := range map[string][2]string{
		"an amount as a text": {`"amount":100`, `"amount":"100"`}, "with decimals": {`"amount":100`, `"amount":100.00`},
		"a currency in capitals": {`"eur"`, `"EUR"`}, "no amount": {`"amount":100,`, ``}, "spaces": {`,"type"`, " ,\n\t\"type\""},
		"an escaped key": {`"k"`, `"\u006b"`}, "an account that is null": {`"livemode"`, `"account":null,"livemode"`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c, _, h := lost(t, nil)
			if code := post(t, h, strings.Replace(charged("k"), r[0], r[1], 1)); code != http.StatusOK {
				t.Errorf("answered %d, want 200", code)
			}
			settled(t, c, "k")
		})
	}
}

// TestBadSignatures: a request without exactly one good, fresh signature over its body is answered 400, and changes nothing.
func TestBadSignatures(t *testing.T) {
	t.Parallel()
	body, s := charged("k"), scheme(t, "stripe")
	at := func(d time.Duration) http.Header {
		return s.Sign([]byte(secret), "", time.Now().Add(d), []byte(body))
	}
	line := func(h http.Header) string { return h.Get("Stripe-Signature") }
	twice := at(0)
	twice.Add("Stripe-Signature", line(at(0)))
	for name, h := range map[string]http.Header{
		"none":             {},
		"an empty one":     {"Stripe-Signature": {""}},
		"another secret":   s.Sign([]byte("another"), "", time.Now(), []byte(body)),
		"another body":     s.Sign([]byte(secret), "", time.Now(), []byte(body+" ")),
		"too old":          at(-6 * time.Minute),
		"of the future":    at(6 * time.Minute),
		"two headers":      twice,
		"two times":        {"Stripe-Signature": {"t=1," + line(at(0))}},
		"no time":          {"Stripe-Signature": {line(at(0))[strings.Index(line(at(0)), "v1="):]}},
		"another version":  {"Stripe-Signature": {strings.Replace(line(at(0)), "v1=", "v0=", 1)}},
		"too many":         {"Stripe-Signature": {"t=1" + strings.Repeat(",v1=00", 20) + "," + line(at(0))[2:]}},
		"a huge time":      {"Stripe-Signature": {"t=99999999999999999999" + line(at(0))[strings.Index(line(at(0)), ","):]}},
		"an earlier time":  {"Stripe-Signature": {"t=1" + line(at(0))[strings.Index(line(at(0)), ","):]}},
		"half a signature": {"Stripe-Signature": {line(at(0))[:len(line(at(0)))-2]}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c, events, handler := lost(t, nil)
			if code := deliver(t, handler, h, body); code != http.StatusBadRequest {
				t.Errorf("answered %d, want 400", code)
			}
			unchanged(t, c)
			if n := len(events.Of(oncehttp.EventUnproved)); n != 1 {
				t.Errorf("%d events, want 1", n)
			}
		})
	}
}

// TestReplayedSignature: the same request again, within its time, changes nothing more.
func TestReplayedSignature(t *testing.T) {
	t.Parallel()
	c, events, h := lost(t, nil)
	body := charged("k")
	header := scheme(t, "stripe").Sign([]byte(secret), "", time.Now(), []byte(body))
	for range 3 {
		if code := deliver(t, h, header, body); code != http.StatusOK {
			t.Errorf("answered %d, want 200", code)
		}
	}
	settled(t, c, "k")
	if n := len(events.Of(oncehttp.EventWitnessed)); n != 1 {
		t.Errorf("%d events witnessed, want 1", n)
	}
}

// TestMethodAndSize: only a POST of a bounded body is read.
func TestMethodAndSize(t *testing.T) {
	t.Parallel()
	_, _, h := lost(t, nil)
	for _, method := range []string{http.MethodGet, http.MethodPut, http.MethodHead, http.MethodDelete, "POSt"} {
		w := httptest.NewRecorder()
		h.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), method, "/", nil))
		if w.Code != http.StatusMethodNotAllowed || w.Header().Get("Allow") != http.MethodPost {
			t.Errorf("%s is answered %d, Allow %q", method, w.Code, w.Header().Get("Allow"))
		}
	}
	for size, want := range map[int]int{1 << 20: http.StatusOK, 1<<20 + 1: http.StatusRequestEntityTooLarge} {
		if code := post(t, h, strings.Repeat(" ", size)); code != want {
			t.Errorf("a body of %d bytes is answered %d, want %d", size, code, want)
		}
	}
}

// TestSlowBody: a body that does not come is not waited for longer than ReadTimeout.
func TestSlowBody(t *testing.T) {
	t.Parallel()
	c, _, _ := lost(t, nil)
	server := httptest.NewServer(handler(t, c, func(cfg *oncehttp.WebhookConfig) { cfg.ReadTimeout = 50 * time.Millisecond }))
	defer server.Close()
	conn, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", server.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	_, _ = io.WriteString(conn, "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 10\r\n\r\n{")
	_ = conn.SetReadDeadline(time.Now().Add(10 * time.Second))
	answer, err := io.ReadAll(conn)
	if err != nil || !strings.HasPrefix(string(answer), "HTTP/1.1 408") {
		t.Errorf("answered %q, %v; want 408", answer, err)
	}
}

// TestNeverSent: an event about an operation that was never sent proves nothing: it is about something else.
func TestNeverSent(t *testing.T) {
	t.Parallel()
	events := &clienttest.Events{}
	c, _ := clienttest.New(t, wiretest.Paid(), func(cfg *oncehttp.Config) { stripe(cfg); cfg.Observe = events.Observe })
	clienttest.Must(t, c.Enqueue(charge(t), "k"))
	if code := post(t, handler(t, c, nil), charged("k")); code != http.StatusOK || len(events.Of(oncehttp.EventUnproved)) != 1 {
		t.Errorf("answered %d, events %v; want 200 and one", code, events.Of(oncehttp.EventUnproved))
	}
	unchanged(t, c)
}

// TestFinalDoesNotChange: an event that contradicts the end of an operation changes nothing, and somebody is told; one that agrees says nothing new.
func TestFinalDoesNotChange(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		end  func(t *testing.T, c *oncehttp.Client)
		told int
	}{
		"absent":    {func(t *testing.T, c *oncehttp.Client) { clienttest.Absent(t, c, "k") }, 1},
		"abandoned": {func(t *testing.T, c *oncehttp.Client) { clienttest.Must(t, c.Abandon(t.Context(), "k")) }, 1},
		"happened": {func(t *testing.T, c *oncehttp.Client) {
			clienttest.Must(t, c.Settle(t.Context(), "k", oncehttp.Resolution{Effect: oncehttp.EffectHappened}))
		}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var log clienttest.Log
			c, events, h := lost(t, func(cfg *oncehttp.Config) { cfg.Logger = log.Logger() })
			row.end(t, c)
			before := clienttest.Lookup(t, c, "k")
			if code := post(t, h, charged("k")); code != http.StatusOK {
				t.Errorf("answered %d, want 200", code)
			}
			now := clienttest.Lookup(t, c, "k")
			if now.State != before.State || now.Effect != before.Effect || !now.Finished.Equal(before.Finished) || (now.Evidence != nil) != (row.told > 0) {
				t.Errorf("the record has changed: %+v", now)
			}
			if row.told > 0 { // nobody begins it once more
				if next, err := c.Redrive(t.Context(), "k"); err == nil {
					t.Errorf("Redrive has begun %q", next)
				}
				if _, err := c.DoKey(charge(t), "k"); errors.Is(err, oncehttp.ErrNoEffect) {
					t.Errorf("Do says %v", err)
				}
			}
			told := events.Of(oncehttp.EventContradicted)
			if len(told) != row.told || log.Has("contradicts") != (row.told > 0) {
				t.Errorf("told %+v, log %q; want %d", told, log.String(), row.told)
			}
		})
	}
}

// TestJournalFails: while the journal fails, an event is answered 503, so that the API sends it again. Then it counts.
func TestJournalFails(t *testing.T) {
	t.Parallel()
	for _, call := range []string{"List", "Get", "Update"} {
		t.Run(call, func(t *testing.T) {
			t.Parallel()
			j := &journaltest.Faulty{Journal: memory.New()}
			c, _, h := lost(t, func(cfg *oncehttp.Config) { cfg.Journal = j })
			fails := journaltest.Once(journaltest.Fails(errors.New("no disk")))
			switch call {
			case "List":
				j.OnList = fails
			case "Get":
				j.OnGet = fails
			case "Update":
				j.OnUpdate = fails
			}
			if code := post(t, h, charged("k")); code != http.StatusServiceUnavailable {
				t.Errorf("answered %d, want 503", code)
			}
			unchanged(t, c)
			if code := post(t, h, charged("k")); code != http.StatusOK {
				t.Errorf("sent again: %d, want 200", code)
			}
			settled(t, c, "k")
		})
	}
}

// TestFinishFails: an event whose evidence is durable is answered 200, also if the operation cannot be settled now. A Resume settles it.
func TestFinishFails(t *testing.T) {
	t.Parallel()
	j := &journaltest.Faulty{Journal: memory.New()}
	c, _, h := lost(t, func(cfg *oncehttp.Config) { cfg.Journal = j })
	j.OnFinish = journaltest.Once(journaltest.Fails(errors.New("no disk")))
	if code := post(t, h, charged("k")); code != http.StatusOK {
		t.Errorf("answered %d, want 200", code)
	}
	if rec := clienttest.Lookup(t, c, "k"); rec.Evidence == nil || rec.State != persist.StatePending {
		t.Errorf("%v, evidence %v; want pending, with evidence", rec.State, rec.Evidence)
	}
	for effect, err := range map[string]error{
		"absent": clienttest.AbsentAsSeen(c, t.Context(), "k"), "abandoned": c.Abandon(t.Context(), "k"),
	} {
		if !errors.Is(err, oncehttp.ErrStale) || !errors.Is(err, oncehttp.ErrOutcomeUnknown) {
			t.Errorf("%s beside the evidence: %v, want ErrStale and ErrOutcomeUnknown", effect, err)
		}
	}
	clienttest.Resume(t, c)
	settled(t, c, "k")
}

// TestAccounts: the account of an event is that of the request, and a key that two operations of one account have proves nothing.
func TestAccounts(t *testing.T) {
	t.Parallel()
	in := func(account string) string {
		return strings.Replace(charged("k"), `"livemode"`, `"account":"`+account+`","livemode"`, 1)
	}
	for name, row := range map[string]struct {
		headers []string // of two operations under one key
		event   string
		settled string // the header of the one that is settled
	}{
		"one of two":          {[]string{"Stripe-Account: acct_1", "Stripe-Account: acct_2"}, in("acct_2"), "Stripe-Account: acct_2"},
		"neither of two":      {[]string{"Stripe-Account: acct_1", "Stripe-Account: acct_2"}, charged("k"), ""},
		"the one without":     {[]string{"Stripe-Account: acct_1", ""}, charged("k"), "none"},
		"two of no account":   {[]string{"Stripe-Context: c1", "Stripe-Context: c2"}, charged("k"), ""},
		"another one's":       {[]string{"Stripe-Account: acct_1", "Stripe-Account: acct_2"}, in("acct_3"), ""},
		"in other case":       {[]string{"Stripe-Account: acct_1", "Stripe-Account: acct_2"}, in("ACCT_2"), ""},
		"two with an account": {[]string{"Stripe-Account: acct_1", "Stripe-Context: c2"}, in("acct_1"), "Stripe-Account: acct_1"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			j := memory.New()
			c, _ := clienttest.New(t, wiretest.Func(func(req *http.Request) (*http.Response, error) {
				wiretest.HandedOver(req)
				return nil, wiretest.ErrLost
			}), clienttest.On(j, stripe))
			for _, header := range row.headers {
				req := charge(t)
				if at, value, found := strings.Cut(header, ": "); found {
					req.Header.Set(at, value)
				}
				if _, err := c.DoKey(req, "k"); !errors.Is(err, oncehttp.ErrOutcomeUnknown) {
					t.Fatal(err)
				}
			}
			if code := post(t, handler(t, c, nil), row.event); code != http.StatusOK {
				t.Errorf("answered %d, want 200", code)
			}
			n := 0
			for _, rec := range journaltest.All(t, j) {
				if rec.State.Final() {
					n++
					for _, s := range rec.Scopes {
						if s.Value != "" && s.Name+": "+s.Value != row.settled {
							t.Errorf("settled is that of %+v, want %q", rec.Scopes, row.settled)
						}
					}
				}
			}
			if want := map[bool]int{true: 1}[row.settled != ""]; n != want {
				t.Errorf("%d are settled, want %d", n, want)
			}
		})
	}
}

// TestCurrencyThatIsNoText: an event whose currency is no text does not agree with a request whose currency is none, either.
func TestCurrencyThatIsNoText(t *testing.T) {
	t.Parallel()
	for value, final := range map[string]bool{`{}`: false, `"eur"`: false} {
		w := &wiretest.Wire{Replies: []wiretest.Reply{{Err: wiretest.ErrLost}}}
		c, _ := clienttest.New(t, w, stripe)
		req := clienttest.Request(t, http.MethodPost, "https://api.example.com/v1/charges", "amount=100&currency=eur&currency=usd")
		req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		if _, err := c.DoKey(req, "k"); !errors.Is(err, oncehttp.ErrOutcomeUnknown) {
			t.Fatal(err)
		}
		post(t, handler(t, c, nil), strings.Replace(charged("k"), `"eur"`, value, 1))
		if rec := clienttest.Lookup(t, c, "k"); rec.State.Final() != final {
			t.Errorf("currency %s: state %v", value, rec.State)
		}
	}
}
