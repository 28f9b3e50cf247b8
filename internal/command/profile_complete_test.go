package command_test

import (
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/oncehttp/oncehttp/internal/command/commandtest"
	"github.com/oncehttp/oncehttp/internal/command/input"
	"github.com/oncehttp/oncehttp/internal/command/results"
	"github.com/oncehttp/oncehttp/internal/command/terminal"
	"github.com/oncehttp/oncehttp/internal/report"
	"github.com/oncehttp/oncehttp/internal/testrun"
	"github.com/oncehttp/oncehttp/mockserver"
	"github.com/oncehttp/oncehttp/profile"
)

// answersOf are the statuses of a request in progress and of a mismatch, as each API's documentation says (the sources are
// in profile/data), and not as its profile does.
var answersOf = map[string]struct{ inProgress, mismatch int }{
	"acp":       {409, 422}, // idempotency_in_flight, idempotency_conflict
	"coinbase":  {409, 422}, // already_exists with a message of its own, idempotency_error
	"resend":    {409, 409}, // concurrent_idempotent_requests, invalid_idempotent_request
	"zuora":     {409, 422},
	"datatrans": {409, 422},
	"stripe":    {409, 400}, // idempotency_key_in_use, idempotency_error
}

// completeProfiles are those of which enough is known to play them: all that is complete, and those of which only the window,
// or whether errors are kept, is not known.
func completeProfiles(t *testing.T) []*profile.Profile {
	t.Helper()
	var all []*profile.Profile
	for _, name := range profile.Names() {
		p, _ := profile.ByName(name)
		_, listed := answersOf[name]
		if p.Complete() && !listed {
			t.Fatalf("profile %s is complete, and its answers are not in the table", name)
		}
		if listed {
			all = append(all, p)
		}
	}
	if len(all) != len(answersOf) {
		t.Fatalf("%d profiles for %d in the table", len(all), len(answersOf))
	}
	return all
}

// For each complete profile, batch and mock work together by its name alone: through a lost answer, an operation that is
// still in progress, and a key that is another request's.
func TestCompleteProfilesBatch(t *testing.T) {
	t.Parallel()
	for _, p := range testrun.Some(completeProfiles(t), 6) {
		t.Run(p.Name, func(t *testing.T) {
			t.Parallel()
			batchAgainst(t, p)
		})
	}
}

// Every case of the check that the mock's own means allow passes for each complete profile, by its name alone. Left out are
// the cases that need a restart, a short window or an outage of the target's store, and bursts of more than three rounds.
func TestCompleteProfilesCheck(t *testing.T) {
	t.Parallel()
	all := testrun.Some(completeProfiles(t), 8)
	mocks, results := make([]*mockserver.Server, len(all)), make([]commandtest.Ran, len(all))
	for i, p := range all {
		mocks[i] = commandtest.StartMock(t, mockserver.Config{Profile: p})
	}
	var wait sync.WaitGroup // beside each other: most of a check is waiting
	for i, p := range all {
		wait.Go(func() { results[i] = checkAgainst(t, mocks[i].URL(), p) })
	}
	wait.Wait()
	for i, p := range all {
		if passed := strings.Count(results[i].Out, "\n  pass "); results[i].Status != terminal.ExitOK || passed < 60 {
			t.Errorf("%s: status %d, %d cases passed:\n%s%s", p.Name, results[i].Status, passed, results[i].Out, results[i].Err)
		}
	}
}

// The rows of the batch. Their ids are UUIDs of version 4, which some APIs insist on.
const (
	rowPlain    = "00000000-0000-4000-8000-000000000001"
	rowLost     = "00000000-0000-4000-8000-000000000002"
	rowSlow     = "00000000-0000-4000-8000-000000000003"
	rowMismatch = "00000000-0000-4000-8000-000000000004"
)

func batchAgainst(t *testing.T, p *profile.Profile) {
	template, prefix := "order:{id}", "idemp:order:"
	if p.Key.Format == profile.UUIDv4 {
		template, prefix = "{id}", ""
	}
	var mu sync.Mutex
	statuses := map[string][]int{}
	m := commandtest.StartMock(t, mockserver.Config{
		Profile: p, ByKey: map[string][]mockserver.Fault{prefix + rowLost: {{Kind: mockserver.DropAfter}}},
		Access: func(a mockserver.Access) {
			mu.Lock()
			defer mu.Unlock()
			statuses[strings.TrimPrefix(a.Key, prefix)] = append(statuses[strings.TrimPrefix(a.Key, prefix)], a.Status)
		},
	})
	another(t, m.URL(), p, prefix+rowMismatch)
	file := commandtest.WriteFile(t, "in.csv", "id,amount,sleep\n"+rowPlain+",1,0\n"+rowLost+",2,0\n"+rowSlow+",3,2500\n"+rowMismatch+",4,0\n")
	got := commandtest.Run(t, "batch", file, "--url", m.URL()+commandtest.EndpointOf(t, p.Name, 0)+"?sleep={sleep}", "--key", template, "--profile", p.Name,
		"--min-delay", "1ms", "--max-delay", "200ms", "--attempt-timeout", "700ms", "--max-attempts", "40").Want(t, terminal.ExitRefused)
	for i, want := range []results.Result{results.Done, results.Done, results.Done, results.Mismatch} {
		if l := got.Lines(t)[i]; l.Result != want || i == 3 && l.Status != answersOf[p.Name].mismatch && l.Error.Code != "key_reused" {
			t.Errorf("row %d: %+v, want %s", i+1, l, want)
		}
	}
	mu.Lock()
	defer mu.Unlock()
	known := answersOf[p.Name]
	if sent := statuses[rowSlow]; fmt.Sprint(sent[len(sent)-1]) != "201" || !strings.Contains(fmt.Sprint(sent), fmt.Sprint(known.inProgress)) {
		t.Errorf("the slow row was answered %v, want %d until it was done", sent, known.inProgress)
	}
	// The mock tells of an answer after it has sent it, so that the earlier one may be told of later.
	if sent := slices.Sorted(slices.Values(statuses[rowMismatch])); fmt.Sprint(sent) != fmt.Sprint([]int{201, known.mismatch}) {
		t.Errorf("the row with a used key was answered %v, want the other's 201, and %d", sent, known.mismatch)
	}
	if sent := statuses[rowLost]; len(sent) < 2 || sent[0] != 0 {
		t.Errorf("the lost answer: %v", sent)
	}
	if snapshot := m.Ledger().Snapshot(); snapshot.Effects != 4 {
		t.Errorf("%d effects, want 4", snapshot.Effects)
	}
}

// another sends a request that is not the batch's under a key.
func another(t *testing.T, url string, p *profile.Profile, key string) {
	t.Helper()
	kind, body := "application/json", `{"amount":"99"}`
	if p.Body.Default() == profile.FormBody {
		kind, body = input.TypeForm, "amount=99"
	}
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url+commandtest.EndpointOf(t, p.Name, 0), strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Content-Type", kind)
	req.Header.Set(p.Carrier.Name, key)
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	_, _ = io.Copy(io.Discard, resp.Body)
	_ = resp.Body.Close()
	if resp.StatusCode != http.StatusCreated {
		t.Fatalf("status %d", resp.StatusCode)
	}
}

// checkAgainst checks a mock. A run in which a race was lost, as on a busy machine, is no verdict, and is made again.
func checkAgainst(t *testing.T, url string, p *profile.Profile) (got commandtest.Ran) {
	for seed := range 3 {
		got = commandtest.Run(t, "check", url+commandtest.EndpointOf(t, p.Name, 0), "--profile", p.Name, "--witness", url+"/_effects?ref={ref}#/count",
			"--delay-query", "sleep={ms}", "--fail-query", "fail={status}", "--crash-query", "crash=1", "--second-path", commandtest.EndpointOf(t, p.Name, 1),
			"-H", "Authorization: Bearer alice", "--as", "Authorization: Bearer bob", "--settle", "1s", "--rounds", "3", "--seed", commandtest.Itoa(7+seed))
		if got.Status != report.ExitUndecided {
			break
		}
	}
	return got
}
