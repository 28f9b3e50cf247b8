package sqltest

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/oncehttp/oncehttp"
	"github.com/oncehttp/oncehttp/internal/testrun"
	"github.com/oncehttp/oncehttp/persist"
)

// The bounds of KilledCallers.
const (
	callersOfProcess = 16  // calls of a process under way
	answersOfProcess = 100 // after these it is killed
)

// callingProcesses is the number of calling processes, one after another; each is killed.
var callingProcesses = testrun.N(2, 6)

// Call is the role of a process of KilledCallers: it calls Do for one key after another, and prints each answer as soon as it has it.
// Several callers do so at the same time. It ends with the first error. Its keys begin with name, so that no other process has them.
func Call(ctx context.Context, url, name string, open func(context.Context) (persist.Journal, error)) error {
	j, err := open(ctx)
	if err != nil {
		return err
	}
	client, err := workClient(j, time.Minute, fleetLease) // also on a machine under load
	if err != nil {
		return err
	}
	failed := make(chan error, callersOfProcess)
	for caller := range callersOfProcess {
		go func() {
			for i := 0; ; i++ {
				key := fmt.Sprintf("%s-%d-%d", name, caller, i)
				answer, err := pay(client, url, key)
				if err != nil {
					failed <- err
					return
				}
				fmt.Println(key, answer)
			}
		}()
	}
	return <-failed
}

// pay makes one payment. It repeats payOnce under the same key after an unknown outcome, or when nothing was sent: at a slow server the short lease may end
// during the call.
func pay(client *oncehttp.Client, url, key string) (answer string, err error) {
	for range 20 {
		answer, err = payOnce(client, url, key)
		if !errors.Is(err, oncehttp.ErrOutcomeUnknown) && !errors.Is(err, oncehttp.ErrNoEffect) {
			return answer, err
		}
		time.Sleep(200 * time.Millisecond)
	}
	return "", err
}

// payOnce calls DoKey once, and returns status and body of the answer as a text.
func payOnce(client *oncehttp.Client, url, key string) (answer string, err error) {
	req, err := http.NewRequest(http.MethodPost, url+"/payments", strings.NewReader(`{"for":"`+key+`"}`))
	if err != nil {
		return "", err
	}
	resp, err := client.DoKey(req, oncehttp.Key(key))
	if err != nil {
		return "", err
	}
	body, err := io.ReadAll(resp.Body)
	return fmt.Sprintf("%d %s", resp.StatusCode, body), errors.Join(err, resp.Body.Close())
}

// decliningAPI pays each key once, and answers it so ever after. A key with a final 3 is declined the first time. This answer
// it does not keep: the same key would be paid the next time.
type decliningAPI struct {
	mu    sync.Mutex
	sends map[string]int
	paid  map[string]string // the answers
}

// declined is its answer to such a key for the first time.
const declined = "402 declined"

// ServeHTTP implements [http.Handler]: it counts the sends of each key, and answers each with its one payment. The first send of a key that ends with 3 it
// declines, and forgets that: a second send would be paid.
func (a *decliningAPI) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	a.mu.Lock()
	defer a.mu.Unlock()
	key := strings.Trim(req.Header.Get("Idempotency-Key"), `"`)
	a.sends[key]++
	if strings.HasSuffix(key, "3") && a.sends[key] == 1 {
		w.WriteHeader(http.StatusPaymentRequired)
		_, _ = io.WriteString(w, strings.TrimPrefix(declined, "402 "))
		return
	}
	if a.paid[key] == "" {
		a.paid[key] = fmt.Sprintf("payment %d", len(a.paid)+1)
	}
	w.WriteHeader(http.StatusCreated)
	_, _ = io.WriteString(w, a.paid[key])
}

// sent returns the keys sent to the API, each with its number of sends.
func (a *decliningAPI) sent() map[string]int {
	a.mu.Lock()
	defer a.mu.Unlock()
	return maps.Clone(a.sends)
}

// KilledCallers kills processes that call Do, some of them between giving an answer (told, to a caller) and recording it. Each key sent to the API must have
// a record. An answer that was not recorded must be found again by its key, and only such keys may be sent again. A declined call must be recorded before it is
// told: the API has forgotten it, so sent again, it would be paid. early counts answers told before they were recorded; at least one must be met. Fleet.Worker
// has the arguments of the role "caller", which follow the URL of the API and the beginning of the keys.
func KilledCallers(t *testing.T, f Fleet) {
	api := &decliningAPI{sends: map[string]int{}, paid: map[string]string{}}
	server := httptest.NewServer(api)
	defer server.Close()
	told, early := map[string]string{}, 0
	// On a fast machine few processes die between an answer and its record: some more are killed until one does.
	for life := 0; life < callingProcesses || early == 0 && life < 10*callingProcesses; life++ {
		heard, records := callAndKill(t, server.URL, fmt.Sprintf("life%d", life), f.Worker), recorded(t, f.Journal)
		maps.Copy(told, heard)
		for key := range api.sent() {
			if rec, ok := records[key]; !ok || !rec.MaybeSent {
				t.Errorf("%s was sent, and there is a record: %t, which says that it may have been sent: %t", key, ok, rec.MaybeSent)
			}
		}
		for key, answer := range heard {
			switch rec := records[key]; {
			case rec.State == persist.StateConfirmed:
			case answer == declined:
				t.Errorf("%s: its caller was told %q, and it is %v: it may be sent again, and be paid", key, answer, rec.State)
			default:
				early++
			}
		}
	}
	if early == 0 {
		t.Error("no process died between an answer and its record")
	}
	t.Logf("%d answers were told, %d of them before the record said so", len(told), early)
	client, err := workClient(f.Journal, time.Minute, fleetLease)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = client.Close() }()
	resumeAll(t, client)
	judgeCallers(t, api, told, recorded(t, f.Journal))
	again(t, client, server.URL, api, told)
}

// callAndKill starts a process that calls Do, kills it after some answers, and returns the answers that its callers got (the lines that it printed), by key.
// name is the beginning of its keys, and worker its further arguments.
func callAndKill(t *testing.T, url, name string, worker []string) map[string]string {
	caller := Child(t.Context(), "caller", append([]string{url, name}, worker...)...)
	caller.Stderr = os.Stderr
	out, err := caller.StdoutPipe()
	if err == nil {
		err = caller.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	told := map[string]string{}
	for lines := bufio.NewScanner(out); lines.Scan(); {
		key, answer, _ := strings.Cut(lines.Text(), " ")
		told[key] = answer
		if len(told) == answersOfProcess {
			if err := caller.Process.Kill(); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := caller.Wait(); len(told) < answersOfProcess {
		t.Fatalf("it has told %d answers, and ended: %v", len(told), err)
	}
	return told
}

// recorded returns the records of a journal by their keys.
func recorded(t *testing.T, j persist.Journal) map[string]persist.Record {
	records := map[string]persist.Record{}
	for rec, err := range j.List(t.Context(), persist.Query{}) {
		if err != nil {
			t.Fatal(err)
		}
		records[rec.Key] = rec
	}
	return records
}

// resumeAll calls Resume until nothing is unfinished. Outcomes that are not known, and operations without an effect, are no failure: the leases of the dead
// have to end first, and at a slow server one of its own may end.
func resumeAll(t *testing.T, client *oncehttp.Client) {
	for start := time.Now(); ; time.Sleep(100 * time.Millisecond) {
		for res, err := range client.Resume(t.Context()) {
			if err != nil && !errors.Is(err, oncehttp.ErrOutcomeUnknown) && !errors.Is(err, oncehttp.ErrNoEffect) {
				t.Fatalf("%q: %v", res.Key, err)
			}
		}
		open := 0
		for _, err := range client.Unfinished(t.Context()) {
			if err != nil {
				t.Fatal(err)
			}
			open++
		}
		if open == 0 {
			return
		}
		if time.Since(start) > 30*time.Second {
			t.Fatalf("%d operations of processes that died are still unfinished", open)
		}
	}
}

// judgeCallers compares the answers that callers got, and the records, with the effects that the API has counted. A key without a payment there was declined.
func judgeCallers(t *testing.T, api *decliningAPI, told map[string]string, records map[string]persist.Record) {
	for key, rec := range records {
		if rec.State != persist.StateConfirmed || rec.Answer == nil {
			t.Errorf("%s is %v", key, rec.State)
			continue
		}
		says := fmt.Sprintf("%d %s", rec.Answer.Status, rec.Answer.Body)
		if answer, ok := told[key]; ok && says != answer {
			t.Errorf("%s: its caller was told %q, and its record says %q", key, answer, says)
		}
		want := declined
		if paid := api.paid[key]; paid != "" {
			want = "201 " + paid
		}
		if says != want {
			t.Errorf("%s: its record says %q, and the API %q", key, says, want)
		}
	}
}

// again makes each answered call once more. It must get the same answer, and nothing is sent.
func again(t *testing.T, client *oncehttp.Client, url string, api *decliningAPI, told map[string]string) {
	before := api.sent()
	for key, answer := range told {
		if got, err := payOnce(client, url, key); got != answer {
			t.Errorf("%s once more: %q, error %v, want %q", key, got, err, answer)
		}
	}
	for key, n := range api.sent() {
		if n != before[key] {
			t.Errorf("%s was sent once more, though its record is final", key)
		}
	}
}
