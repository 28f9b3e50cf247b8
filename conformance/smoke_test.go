package conformance_test

import (
	"fmt"
	"net/http"
	"os"
	"slices"
	"sort"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/oncehttp/oncehttp/conformance"
	"github.com/oncehttp/oncehttp/internal/report"
	"github.com/oncehttp/oncehttp/mockserver"
	"github.com/oncehttp/oncehttp/profile"
)

func TestSurvey(t *testing.T) {
	var names []string
	for _, b := range mockserver.Bugs() {
		names = append(names, b.Name)
	}
	if v := os.Getenv("BUG"); v != "" {
		names = strings.Split(v, ",")
	}
	var wg sync.WaitGroup
	sem := make(chan struct{}, 6)
	var mu sync.Mutex
	out := map[string]string{}
	for _, n := range names {
		wg.Go(func() {
			sem <- struct{}{}
			defer func() { <-sem }()
			p := profile.Draft07()
			p.Stored.ServerError = profile.No
			server := mockserver.New(mockserver.Config{Bug: n, Profile: p})
			server.Start()
			defer server.Close()
			url := server.URL()
			par := 8
			if n == "store-too-small" {
				par = 1
			}
			rep, err := conformance.Run(t.Context(), conformance.Options{Profile: p, Parallel: par,
				URL: url + "/payments", SecondPath: "/refunds", ActionPath: "/payments/{id}/cancel",
				Header: http.Header{"Authorization": {"Bearer alice-alice"}}, As: http.Header{"Authorization": {"Bearer bob-bob-bob"}},
				Witness: url + "/_effects?ref={ref}#/count", DelayQuery: "sleep={ms}", FailQuery: "fail={status}", CrashQuery: "crash=1",
				Hold: 150 * time.Millisecond, Settle: 600 * time.Millisecond, AnswerTimeout: 2 * time.Second, Rounds: 4,
			})
			if err != nil {
				t.Error(err)
				return
			}
			var s []string
			for _, c := range rep.Cases {
				if slices.Contains([]report.Verdict{report.Fail, report.Warn, report.Error, report.Inconclusive}, c.Verdict) {
					s = append(s, fmt.Sprintf("    %s %s %s: want %s; got %s %s", c.Verdict, c.ID, c.Odds, c.Expected, c.Actual, c.Reason))
				}
			}
			mu.Lock()
			i := slices.IndexFunc(mockserver.Bugs(), func(b mockserver.Bug) bool { return b.Name == n })
			cs := ""
			if i >= 0 {
				cs = fmt.Sprint(mockserver.Bugs()[i].Cases)
			}
			out[n] = fmt.Sprintf("%s %s (%.0f ms)\n%s", n, cs, rep.MS, strings.Join(s, "\n"))
			mu.Unlock()
		})
	}
	wg.Wait()
	var ks []string
	for k := range out {
		ks = append(ks, k)
	}
	sort.Strings(ks)
	for _, k := range ks {
		fmt.Println(out[k])
	}
}
