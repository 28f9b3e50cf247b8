package main

import (
	"bytes"
	"context"
	"errors"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stripe/stripe-go/v85"

	"github.com/oncehttp/oncehttp"
	"github.com/oncehttp/oncehttp/persist"
	"github.com/oncehttp/oncehttp/persist/bolt"
)

const secret = "sk_test_123"

// attempts is how often the tests' clients try.
const attempts = 3

// The tests share one stripe-mock, which keeps nothing.
func TestStripe(t *testing.T) {
	t.Parallel()
	mock, err := startMock(t.Context(), t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(mock.stop)
	for name, test := range map[string]func(*testing.T, string){
		"objects": testObjects, "errors": testErrors, "cut after the send": testCut, "always cut": testAlwaysCut,
		"no server": testNoServer, "restart": testRestart, "died": testDied,
		"captured": testCaptured,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(t, mock.url)
		})
	}
}

// The program itself.
func TestRun(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	if err := run(t.Context(), &out, t.TempDir()); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"in the journal idemp:order:uid123:order456 is confirmed after 1 sends\n", "\nretrieved pi_",
		"an error is the SDK's own: *stripe.Error, 400 invalid_request_error\n",
	} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("want %q in\n%s", want, &out)
		}
	}
}

// bench is a client of the SDK, and the journal under it.
type bench struct {
	*stripe.Client
	once    *oncehttp.Client
	journal persist.Journal
}

// open makes a client on the journal at path.
func open(t *testing.T, path, url, secret string, change func(*oncehttp.Config)) *bench {
	t.Helper()
	journal, err := bolt.Open(path, bolt.Options{})
	if err != nil {
		t.Fatal(err)
	}
	cfg := config()
	cfg.Journal = journal
	cfg.Retry = oncehttp.Policy{MaxAttempts: attempts, MinDelay: time.Millisecond, MaxDelay: time.Millisecond}
	if change != nil {
		change(&cfg)
	}
	once, err := oncehttp.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	b := &bench{newStripe(once.StandardClient(), url, secret), once, journal}
	t.Cleanup(func() { b.close(t) })
	return b
}

// close may be called twice.
func (b *bench) close(t *testing.T) {
	t.Helper()
	if err := errors.Join(b.once.Close(), b.journal.Close()); err != nil && !errors.Is(err, persist.ErrClosed) {
		t.Error(err)
	}
}

func fresh(t *testing.T, url, secret string) *bench {
	t.Helper()
	return open(t, filepath.Join(t.TempDir(), "stripe.db"), url, secret, nil)
}

func (b *bench) records(t *testing.T) []persist.Record {
	t.Helper()
	var all []persist.Record
	for rec, err := range b.journal.List(t.Context(), persist.Query{}) {
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, rec)
	}
	return all
}

func payment(key oncehttp.Key) *stripe.PaymentIntentCreateParams {
	params := &stripe.PaymentIntentCreateParams{Amount: stripe.Int64(4200), Currency: stripe.String("eur")}
	if key != "" {
		params.SetIdempotencyKey(string(key))
	}
	return params
}

// The SDK creates, retrieves and lists. Each POST, and nothing else, is in the
// journal, under the key that the SDK sent; no secret is.
func testObjects(t *testing.T, url string) {
	path := filepath.Join(t.TempDir(), "stripe.db")
	b := open(t, path, url, secret, nil)
	own := oncehttp.NewScope("order").Key("u1", "o1")
	var keys []string
	for _, key := range []oncehttp.Key{own, ""} { // ours, and one that the SDK makes
		intent, err := b.V1PaymentIntents.Create(t.Context(), payment(key))
		if err != nil || intent.ID == "" || intent.LastResponse.IdempotencyKey == "" {
			t.Fatalf("create: %+v, %v", intent, err)
		}
		keys = append(keys, intent.LastResponse.IdempotencyKey) // as stripe-mock saw it
	}
	customer, err := b.V1Customers.Create(t.Context(), &stripe.CustomerCreateParams{Name: stripe.String("Ada")})
	if err != nil || customer.Name != "Ada" {
		t.Fatalf("create: %+v, %v", customer, err)
	}
	keys = append(keys, customer.LastResponse.IdempotencyKey)
	if got, err := b.V1Customers.Retrieve(t.Context(), customer.ID, nil); err != nil || got.ID != customer.ID {
		t.Errorf("retrieve: %+v, %v", got, err)
	}
	listed := 0
	for c, err := range b.V1Customers.List(t.Context(), nil).All(t.Context()) {
		if err != nil || c.ID == "" {
			t.Fatalf("list: %+v, %v", c, err)
		}
		listed++
	}
	if listed == 0 {
		t.Error("the list is empty")
	}
	records := b.records(t)
	if len(records) != len(keys) || keys[0] != string(own) {
		t.Fatalf("%d records for %d POSTs, the first under %q", len(records), len(keys), keys[0])
	}
	for i, rec := range records {
		if rec.Key != keys[i] || rec.State != persist.StateConfirmed || rec.Method != http.MethodPost || rec.Sends != 1 || rec.Answer == nil || rec.Answer.Status != 200 {
			t.Errorf("record %d: %+v; want the key %q, confirmed by 200 after one send", i, rec, keys[i])
		}
	}
	b.close(t)
	if file, err := os.ReadFile(path); err != nil || bytes.Contains(file, []byte(secret)) || !bytes.Contains(file, []byte(own)) {
		t.Errorf("the journal (%d bytes, %v) has the secret, or not the key", len(file), err)
	}
}

// Errors are the SDK's own, and leave nothing pending.
func testErrors(t *testing.T, url string) {
	for name, c := range map[string]struct {
		secret string
		params *stripe.PaymentIntentCreateParams
		status int
	}{
		"incomplete": {secret, &stripe.PaymentIntentCreateParams{}, 400},
		"not known":  {"nonsense", payment(""), 401},
	} {
		b := fresh(t, url, c.secret)
		_, err := b.V1PaymentIntents.Create(t.Context(), c.params)
		var whole *stripe.Error
		var typed *stripe.InvalidRequestError
		if !errors.As(err, &whole) || whole.HTTPStatusCode != c.status || whole.Msg == "" || !errors.As(err, &typed) {
			t.Errorf("%s: %T %v; want the SDK's own, status %d", name, err, err, c.status)
		}
		for rec := range b.once.Unfinished(t.Context()) {
			t.Errorf("%s: %+v is left", name, rec)
		}
	}
	b := fresh(t, url, "nonsense")
	_, err := b.V1Customers.Retrieve(t.Context(), "cus_1", nil)
	if whole := (*stripe.Error)(nil); !errors.As(err, &whole) || whole.HTTPStatusCode != 401 {
		t.Errorf("a GET's error is a %T: %v", err, err)
	}
}

// A connection that is cut once the request is out: the same key and the same
// bytes again, and the SDK sees nothing of it.
func testCut(t *testing.T, url string) {
	p := newProxy(t, url, 1)
	b := fresh(t, p.url, secret)
	intent, err := b.V1PaymentIntents.Create(t.Context(), payment(""))
	if err != nil {
		t.Fatal(err)
	}
	sent := p.received()
	if len(sent) != 2 {
		t.Fatalf("%d connections, want 2", len(sent))
	}
	if sent[0] != sent[1] {
		t.Errorf("the second send differs from the first:\n%s\n%s", sent[0], sent[1])
	}
	for i, raw := range sent {
		req, body := parse(t, raw)
		if key := req.Header.Values("Idempotency-Key"); len(key) != 1 || key[0] != intent.LastResponse.IdempotencyKey {
			t.Errorf("send %d has the keys %q, the SDK's is %q", i+1, key, intent.LastResponse.IdempotencyKey)
		}
		if body != "amount=4200&currency=eur" {
			t.Errorf("send %d has the body %q", i+1, body)
		}
	}
	rec, err := b.once.Lookup(t.Context(), oncehttp.Key(intent.LastResponse.IdempotencyKey))
	if err != nil || rec.State != persist.StateConfirmed || rec.Sends != 2 {
		t.Errorf("%+v, %v; want confirmed after 2 sends", rec, err)
	}
}

// No answer comes through: the error says that the outcome is unknown, and the
// same key goes on. The SDK does not multiply the attempts.
func testAlwaysCut(t *testing.T, url string) {
	p := newProxy(t, url, attempts)
	b := fresh(t, p.url, secret)
	key := oncehttp.NewScope("order").Key("u1", "o2")
	_, err := b.V1PaymentIntents.Create(t.Context(), payment(key))
	if !errors.Is(err, oncehttp.ErrOutcomeUnknown) || errors.Is(err, oncehttp.ErrNoEffect) {
		t.Errorf("%T %v; want ErrOutcomeUnknown", err, err)
	}
	if sends := len(p.received()); sends != attempts {
		t.Errorf("%d sends, want %d", sends, attempts)
	}
	intent, err := b.V1PaymentIntents.Create(t.Context(), payment(key))
	if err != nil || intent.LastResponse.IdempotencyKey != string(key) {
		t.Fatalf("%+v, %v", intent, err)
	}
	sent := p.received()
	if len(sent) != attempts+1 || sent[0] != sent[attempts] {
		t.Errorf("%d sends; the last:\n%s\nthe first:\n%s", len(sent), sent[len(sent)-1], sent[0])
	}
}

// Nobody listens: the error still says that nothing happened.
func testNoServer(t *testing.T, _ string) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	url := "http://" + listener.Addr().String()
	if err := listener.Close(); err != nil {
		t.Fatal(err)
	}
	b := fresh(t, url, secret)
	_, err = b.V1PaymentIntents.Create(t.Context(), payment(""))
	if !errors.Is(err, oncehttp.ErrNoEffect) || !errors.Is(err, oncehttp.ErrNotSent) {
		t.Errorf("%T %v; want ErrNoEffect and ErrNotSent", err, err)
	}
	if left := b.records(t); len(left) != 0 {
		t.Errorf("%d records are left", len(left))
	}
}

// A program that starts again and makes the same payment under the same key gets
// the recorded answer, and sends nothing.
func testRestart(t *testing.T, url string) {
	p := newProxy(t, url, 0)
	path := filepath.Join(t.TempDir(), "stripe.db")
	key := oncehttp.NewScope("order").Key("u1", "o3")
	var ids []string
	for range 2 {
		b := open(t, path, p.url, secret, nil)
		intent, err := b.V1PaymentIntents.Create(t.Context(), payment(key))
		if err != nil {
			t.Fatal(err)
		}
		ids = append(ids, intent.ID)
		b.close(t)
	}
	if ids[0] != ids[1] || ids[0] == "" || len(p.received()) != 1 {
		t.Errorf("%q over %d connections; want one answer twice, and one connection", ids, len(p.received()))
	}
}

// A process that dies with its request on the wire has begun an operation that
// Resume finishes, with the same key and bytes, once Authorize brings the secret.
func testDied(t *testing.T, url string) {
	p := newProxy(t, url, 1)
	path := filepath.Join(t.TempDir(), "stripe.db")
	copied := filepath.Join(t.TempDir(), "as-it-was.db")
	key := oncehttp.NewScope("order").Key("u1", "o4")
	b := open(t, path, p.url, secret, func(c *oncehttp.Config) {
		c.Retry.MaxAttempts = 1
		c.Observe = func(_ context.Context, e oncehttp.Event) {
			if e.Kind != oncehttp.EventAttempt {
				return
			}
			file, err := os.ReadFile(path) // what a dead process leaves
			if err = errors.Join(err, os.WriteFile(copied, file, 0o600)); err != nil {
				t.Error(err)
			}
		}
	})
	if _, err := b.V1PaymentIntents.Create(t.Context(), payment(key)); !errors.Is(err, oncehttp.ErrOutcomeUnknown) {
		t.Fatalf("got %v", err)
	}
	b = open(t, copied, p.url, secret, func(c *oncehttp.Config) {
		c.Origins = []string{"http://127.0.0.1:*"}
		c.Authorize = func(req *http.Request) error {
			req.Header.Set("Authorization", "Bearer "+secret)
			return nil
		}
	})
	resumed := 0
	for res, err := range b.once.Resume(t.Context()) {
		if err != nil || res.Key != key || res.Outcome != oncehttp.OutcomeConfirmed {
			t.Errorf("%+v, %v", res, err)
		}
		resumed++
	}
	sent := p.received()
	if resumed != 1 || len(sent) != 2 {
		t.Fatalf("%d resumed, %d sends; want 1, 2", resumed, len(sent))
	}
	first, firstBody := parse(t, sent[0])
	second, secondBody := parse(t, sent[1])
	if firstBody != secondBody || first.Header.Get("Idempotency-Key") != second.Header.Get("Idempotency-Key") {
		t.Errorf("after the crash:\n%s\nbefore:\n%s", sent[1], sent[0])
	}
}
