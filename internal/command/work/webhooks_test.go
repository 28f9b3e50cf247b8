package work_test

import (
	"bufio"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/oncehttp/oncehttp"
	"github.com/oncehttp/oncehttp/internal/behaviour/wiretest"
	"github.com/oncehttp/oncehttp/internal/command/commandtest"
	"github.com/oncehttp/oncehttp/internal/command/terminal"
	"github.com/oncehttp/oncehttp/profile"
	"github.com/oncehttp/oncehttp/sign"
)

// lostCharge puts a charge without an answer into a journal.
func lostCharge(t *testing.T, journal string) {
	t.Helper()
	c, err := oncehttp.Open(journal, oncehttp.Config{
		Profile: profile.StripeV1(), Transport: &wiretest.Wire{Replies: []wiretest.Reply{{Err: wiretest.ErrLost}}}, Retry: oncehttp.Policy{MaxAttempts: 1},
	})
	if err != nil {
		t.Fatal(err)
	}
	req, _ := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://127.0.0.1:9/v1/charges", strings.NewReader("amount=100"))
	if _, err := c.DoKey(req, "order:1"); err == nil {
		t.Fatal("it has an answer")
	}
	if err := c.Close(); err != nil {
		t.Fatal(err)
	}
}

// event posts Stripe's event of a charge, and returns the status of the answer.
func event(t *testing.T, url, secret, body string) int {
	t.Helper()
	scheme, _ := sign.WebhookOf("stripe")
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header = scheme.Sign([]byte(secret), "", time.Now(), []byte(body))
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	_ = resp.Body.Close()
	return resp.StatusCode
}

// TestWebhooks: work takes events of an API, settles an operation by one that proves it, and counts the others. journal show has the evidence.
func TestWebhooks(t *testing.T) {
	t.Parallel()
	journal := filepath.Join(t.TempDir(), "j.db")
	lostCharge(t, journal)
	secrets := filepath.Join(t.TempDir(), "secrets")
	if err := os.WriteFile(secrets, []byte("new\r\nold\n\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	w := commandtest.StartWork(t, "--journal", journal, "--profile", "stripe", "--webhooks", "127.0.0.1:0", "--webhook-secret", "@"+secrets)
	url := w.Errs.Await(t, `events at (http://[^;\s]+)`)
	proof := `{"id":"evt_7","type":"charge.succeeded","livemode":true,"created":` + strconv.FormatInt(time.Now().Unix(), 10) + `,"request":{"idempotency_key":"order:1"},"data":{"object":{"status":"succeeded","amount":100}}}`
	for _, row := range []struct {
		secret, body string
		want         int
	}{
		{"another", proof, http.StatusBadRequest},
		{"old", strings.Replace(proof, "order:1", "order:2", 1), http.StatusOK},
		{"old", proof, http.StatusOK},
		{"new", proof, http.StatusOK},
	} {
		if got := event(t, url, row.secret, row.body); got != row.want {
			t.Errorf("answered %d, want %d", got, row.want)
		}
	}
	if _, now := w.Ask(t); now.Events["witnessed"] != 1 || now.Events["unproved"] != 2 || now.Attempts != 0 {
		t.Errorf("healthz says %+v", now)
	}
	if text := w.Scrape(t); !strings.Contains(text, `oncehttp_work_webhook_events_total{use="unproved"} 2`) {
		t.Errorf("no events in\n%s", text)
	}
	if got := w.Stop(t, syscall.SIGTERM); got != terminal.ExitOK {
		t.Errorf("status %d", got)
	}
	for args, want := range map[string]string{"": "evidence  charge.succeeded evt_7, by key, signed as stripe", "--json": `"evidence":{"event":"evt_7","type":"charge.succeeded","by":"key","scheme":"stripe"`} {
		shown := commandtest.Run(t, append([]string{"journal", "show", "order:1", "--journal", journal}, strings.Fields(args)...)...).Want(t, terminal.ExitOK).Out
		if !strings.Contains(shown, want) || !strings.Contains(shown, "settled") {
			t.Errorf("journal show %s:\n%s", args, shown)
		}
	}
}

// TestWebhooksWithoutASecret: without a secret, or with a wrong setting, it does not start, with status 2.
func TestWebhooksWithoutASecret(t *testing.T) {
	t.Parallel()
	journal := filepath.Join(t.TempDir(), "j.db")
	lostCharge(t, journal)
	empty := filepath.Join(t.TempDir(), "empty")
	if err := os.WriteFile(empty, []byte(" \n"), 0o600); err != nil {
		t.Fatal(err)
	}
	good := filepath.Join(t.TempDir(), "good")
	if err := os.WriteFile(good, []byte("s\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, row := range []struct{ args, want string }{
		{"--profile stripe --webhooks 127.0.0.1:0", "ONCEHTTP_WEBHOOK_SECRET"},
		{"--profile stripe --webhooks 127.0.0.1:0 --webhook-secret @" + empty, "ONCEHTTP_WEBHOOK_SECRET"},
		{"--profile stripe --webhooks 127.0.0.1:0 --webhook-secret s", "process list"},
		{"--profile stripe --webhooks 127.0.0.1:0 --webhook-secret @" + empty + "x", "--webhook-secret"},
		{"--profile stripe --webhook-secret @" + good, "--webhooks ADDRESS"},
		{"--webhooks 127.0.0.1:0 --webhook-secret @" + good, "no event is known to prove anything"},
		{"--profile square --webhooks 127.0.0.1:0 --webhook-account M --webhook-secret @" + good, "signs the address"},
		{"--profile square --webhooks 127.0.0.1:0 --webhook-secret @" + good, "want Account"},
		{"--profile stripe --webhook-account M", "--webhooks ADDRESS"},
		{"--profile stripe --webhooks 127.0.0.1:0 --webhook-tolerance 2h --webhook-secret @" + good, "want at most 1h"},
		{"--profile stripe --webhooks 127.0.0.1:0 --webhook-reference order --webhook-secret @" + good, "EVENT=REQUEST"},
		{"--profile stripe --webhooks nowhere --webhook-secret @" + good, "--webhooks nowhere"},
	} {
		r := commandtest.Run(t, append([]string{"work", "--journal", journal}, strings.Fields(row.args)...)...)
		if r.Status != terminal.ExitUsage || !strings.Contains(r.Err, row.want) {
			t.Errorf("work %s: status %d, %s; want 2, and %q", row.args, r.Status, r.Err, row.want)
		}
	}
}

// TestMockSendsWebhooks: the mock of the command sends events, and work takes them: the first is forged, and comes again as it should.
func TestMockSendsWebhooks(t *testing.T) {
	t.Parallel()
	journal, secret := filepath.Join(t.TempDir(), "j.db"), filepath.Join(t.TempDir(), "secret")
	lostCharge(t, journal)
	if err := os.WriteFile(secret, []byte("s\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	w := commandtest.StartWork(t, "--journal", journal, "--profile", "stripe", "--webhooks", "127.0.0.1:0", "--webhook-secret", "@"+secret)
	url := w.Errs.Await(t, `events at (http://[^;\s]+)`)
	mock := startMock(t, "--profile", "stripe", "--webhooks", url, "--webhook-secret", "@"+secret, "--webhook-faults", "forged,ok")
	req, _ := http.NewRequestWithContext(t.Context(), http.MethodPost, mock+"/v1/charges", strings.NewReader("amount=100"))
	req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	req.Header.Set("Idempotency-Key", "order:1")
	resp, err := http.DefaultClient.Do(req)
	if err != nil || resp.StatusCode >= 300 {
		t.Fatalf("%v, %v", resp, err)
	}
	_ = resp.Body.Close()
	for end := time.Now().Add(20 * time.Second); ; time.Sleep(20 * time.Millisecond) {
		if _, now := w.Ask(t); now.Events["witnessed"] == 1 && now.Events["unproved"] == 1 {
			break
		} else if time.Now().After(end) {
			t.Fatalf("healthz says %+v", now)
		}
	}
	w.Stop(t, syscall.SIGTERM)
}

// startMock starts oncehttp mock, and returns its URL.
func startMock(t *testing.T, args ...string) string {
	t.Helper()
	mock, _ := commandtest.Child(t, append([]string{"mock"}, args...)...)
	out, err := mock.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := mock.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = mock.Process.Kill(); _ = mock.Wait() })
	line, err := bufio.NewReader(out).ReadString('\n')
	url, found := strings.CutPrefix(strings.TrimSpace(line), "listening on ")
	if err != nil || !found {
		t.Fatalf("%q, %v", line, err)
	}
	return url
}

// TestWebhookAgainstARefusal: an event that says that a refused charge happened makes its outcome unknown to every command: nothing is sent, no new generation is advised,
// and the next step is to ask the API.
func TestWebhookAgainstARefusal(t *testing.T) {
	t.Parallel()
	api := commandtest.Serve(t, func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusPaymentRequired)
		_, _ = io.WriteString(w, `{"error":{"code":"card_declined"}}`)
	})
	file := commandtest.WriteFile(t, "in.csv", "amount\n100\n")
	journal := file + ".oncehttp.db"
	batch := []string{"batch", file, "--url", api.URL + "/v1/charges", "--key", "order:{amount}", "--profile", "stripe"}
	commandtest.Run(t, batch...).Want(t, terminal.ExitRefused)
	secret := filepath.Join(t.TempDir(), "secret")
	if err := os.WriteFile(secret, []byte("s\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	w := commandtest.StartWork(t, "--journal", journal, "--profile", "stripe", "--webhooks", "127.0.0.1:0", "--webhook-secret", "@"+secret)
	proof := `{"id":"evt_7","type":"charge.succeeded","livemode":true,"created":` + strconv.FormatInt(time.Now().Unix(), 10) + `,"request":{"idempotency_key":"idemp:order:100"},"data":{"object":{"status":"succeeded","amount":100}}}`
	if got := event(t, w.Errs.Await(t, `events at (http://[^;\s]+)`), "s", proof); got != http.StatusOK {
		t.Fatalf("answered %d", got)
	}
	if got := w.Stop(t, syscall.SIGTERM); got != terminal.ExitOK {
		t.Errorf("status %d", got)
	}
	for _, more := range [][]string{nil, {"--generation", "2"}} {
		got := commandtest.Run(t, append(batch, more...)...).Want(t, terminal.ExitUnknown)
		if !strings.Contains(got.Err, "1 unknown (402): an event of the API says that they happened") && !strings.Contains(got.Err, "1 unknown (contradicted): an event of the API says that they happened") ||
			strings.Contains(got.Err, "tries anew") || strings.Contains(got.Err, "run the same command again") || !strings.Contains(got.Out, `"code":"contradicted"`) || !strings.Contains(got.Out, "charge.succeeded evt_7") {
			t.Errorf("%v: %s\n%s", more, got.Err, got.Out)
		}
	}
	export := commandtest.WriteFile(t, "export.csv", "key\nanother\n")
	audit := commandtest.Run(t, "audit", "--journal", journal, "--match", "key", "--against", export, "--all-rows").Want(t, terminal.ExitFindings).Out
	if !strings.Contains(audit, "unresolved    idemp:order:100") || !strings.Contains(audit, "an event of the API says that it happened") || strings.Contains(audit, "--declined") {
		t.Errorf("audit says %s", audit)
	}
	if n := api.Sends.Load(); n != 1 {
		t.Errorf("%d sends, want 1", n)
	}
}
