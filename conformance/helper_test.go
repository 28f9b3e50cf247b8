package conformance_test

import (
	"bytes"
	"context"
	"encoding/json"
	"flag"
	"io"
	"log"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/oncehttp/oncehttp/conformance"
	"github.com/oncehttp/oncehttp/internal/report"
	"github.com/oncehttp/oncehttp/internal/testrun"
	"github.com/oncehttp/oncehttp/mockserver"
	"github.com/oncehttp/oncehttp/profile"
)

// releasing is the default profile with a word on server errors, which that one
// leaves open: they are not stored. The mock does it so.
func releasing() *profile.Profile {
	p := profile.Draft07()
	p.Stored.Client = p.KeptErrors()
	p.Name, p.Stored.ServerError = "draft-07-releasing", profile.No
	return p
}

// start serves a mock until the test ends.
func start(t *testing.T, cfg mockserver.Config) string {
	t.Helper()
	server := mockserver.New(cfg)
	t.Cleanup(func() {
		if err := server.Close(); err != nil {
			t.Errorf("Close: %v", err)
		}
	})
	if inVirtualTime() {
		return publish(t, server.Pipe().Transport().DialContext)
	}
	if err := server.Start(); err != nil {
		t.Error(err) // and not Fatal: it may be called by any goroutine
	}
	return server.URL()
}

// options are for a mock at that URL, with bounds that suit a test.
func options(url string, p *profile.Profile) conformance.Options {
	return conformance.Options{
		URL: url + "/payments", Profile: p, SecondPath: "/refunds", ActionPath: "/payments/{id}/cancel",
		Header:     http.Header{"Authorization": {"Bearer alice-alice"}},
		As:         http.Header{"Authorization": {"Bearer bob-bob-bob"}},
		Witness:    url + "/_effects?ref={ref}#/count",
		DelayQuery: "sleep={ms}", FailQuery: "fail={status}", CrashQuery: "crash=1",
		Hold: 200 * time.Millisecond, Settle: 600 * time.Millisecond, AnswerTimeout: 5 * time.Second,
		Rounds: 5, Seed: 7, Parallel: 16,
	}
}

// taken holds one for each run that is under way, of all tests together: most of
// a run is waiting, so that more of them fit than there are processors, to which
// parallel tests are bound.
var taken = sync.OnceValue(func() chan struct{} {
	if *seedsFlag > 1 { // nothing else runs then
		return make(chan struct{}, 2*seats)
	}
	return make(chan struct{}, seats)
})

// beside runs the function for all of them, some at a time. The function must not
// call Fatal.
func beside[T any](all []T, do func(i int, one T)) {
	var wait sync.WaitGroup
	for i, one := range all {
		wait.Go(func() {
			taken() <- struct{}{}
			defer func() { <-taken() }()
			do(i, one)
		})
	}
	wait.Wait()
}

// everything lets tests take all that some draws from.
var everything = flag.Bool("all", false, "take all broken servers, variants and mutants: without it every second in the gate, every tenth elsewhere")

// some is every second of them, every fifth under the race detector, which makes each cost
// several times the work, and every tenth where not all is tested. All of them: -args -all.
func some[T any](all []T) []T {
	nth := max(thinning, 2)
	switch {
	case *everything:
		nth = 1
	case !testrun.Whole():
		nth = 10
	}
	var few []T
	for i := 0; i < len(all); i += nth {
		few = append(few, all[i])
	}
	return few
}

func run(t *testing.T, o conformance.Options) *conformance.Report {
	t.Helper()
	dial := dialOf(o.URL)
	if dial != nil {
		o.AllowHosts = append(o.AllowHosts, hostOf(o.URL))
	}
	rep, err := conformance.RunOver(t.Context(), o, dial)
	if err != nil {
		t.Errorf("Run: %v", err) // and not Fatal: it may be called by any goroutine
		return &conformance.Report{}
	}
	return rep
}

// runSure runs again, twice at most, where a race was lost: on a busy machine an
// overlap may not come about, and that is no verdict.
func runSure(t *testing.T, o conformance.Options) (rep *conformance.Report) {
	t.Helper()
	for range 3 {
		if rep = run(t, o); rep.Summary.Inconclusive+rep.Summary.Error == 0 {
			break
		}
	}
	return rep
}

// wrong are the cases with a verdict that a correct server does not get.
func wrong(rep *conformance.Report) map[string]conformance.Verdict {
	all := map[string]conformance.Verdict{}
	for _, c := range rep.Cases {
		switch c.Verdict {
		case conformance.VerdictFail, conformance.VerdictWarn, conformance.VerdictInconclusive, conformance.VerdictError:
			all[c.ID] = c.Verdict
		}
	}
	return all
}

// find is the result of one case.
func find(t *testing.T, rep *conformance.Report, id string) conformance.Result {
	t.Helper()
	for _, c := range rep.Cases {
		if c.ID == id {
			return c
		}
	}
	t.Errorf("the report has no case %s", id)
	return conformance.Result{}
}

// text is the report for a person, to show what went wrong.
func text(rep *conformance.Report) string {
	var b bytes.Buffer
	written, err := rendered(rep)
	if err != nil {
		return err.Error()
	}
	if err := report.WriteText(&b, written, report.Options{}); err != nil {
		return err.Error()
	}
	return b.String()
}

// rendered is the report as the writers of formats read it.
func rendered(rep *conformance.Report) (*report.Report, error) {
	form, err := json.Marshal(rep)
	if err != nil {
		return nil, err
	}
	return report.Parse(bytes.NewReader(form))
}

// hook is an HTTP POST as a hook of the options.
func hook(url string) func(context.Context) error {
	return func(ctx context.Context) error {
		request, err := http.NewRequestWithContext(ctx, http.MethodPost, url, nil)
		if err != nil {
			return err
		}
		client := &http.Client{Transport: &http.Transport{DialContext: dialOf(url), DisableKeepAlives: true}}
		response, err := client.Do(request)
		if err != nil {
			return err
		}
		return response.Body.Close()
	}
}

// quiet is a log for servers whose handlers crash when they are told to.
func quiet() *log.Logger { return log.New(io.Discard, "", 0) }

// list is verdicts in the spelling of the tables, sorted.
func list(verdicts map[string]conformance.Verdict) string {
	var all []string
	for id, v := range verdicts {
		sign := map[conformance.Verdict]string{conformance.VerdictWarn: "?", conformance.VerdictInconclusive: "~", conformance.VerdictError: "!"}[v]
		all = append(all, sign+id)
	}
	slices.Sort(all)
	return strings.Join(all, " ")
}

// parseVerdicts reads that spelling.
func parseVerdicts(list string) map[string]conformance.Verdict {
	all := map[string]conformance.Verdict{}
	for id := range strings.FieldsSeq(list) {
		name := strings.TrimLeft(id, "?~")
		all[name] = map[byte]conformance.Verdict{'?': conformance.VerdictWarn, '~': conformance.VerdictInconclusive}[id[0]]
		if all[name] == "" {
			all[name] = conformance.VerdictFail
		}
	}
	return all
}
