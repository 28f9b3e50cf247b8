package main

import (
	"fmt"
	"net/http"
	"time"

	"github.com/oncehttp/oncehttp/conformance"
	"github.com/oncehttp/oncehttp/mockserver"
	"github.com/oncehttp/oncehttp/profile"
)

// mockRole is the program of a child process: a mock server for the check of the conformance suite. It prints its address, and ends when its standard
// input ends.
func mockRole([]string) error {
	s := mockserver.New(mockserver.Config{Profile: checkedProfile()})
	s.Start()
	defer s.Close()
	fmt.Println(s.URL())
	awaitEnd()
	return nil
}

// checkedProfile returns the default profile (the rules of the API) with one that it leaves open: the mock does not store server errors, and so does not replay
// them.
func checkedProfile() *profile.Profile {
	p := profile.Draft07()
	p.Stored.ServerError = profile.No
	return p
}

// runConformance measures the duration of quick and full checks of a local server by the conformance suite. A tiny run has no full ones.
func runConformance(b *bench) error {
	const group = "check of a local server"
	var full, quick samples
	var cases, quickCases int
	for range b.rounds {
		for _, short := range []bool{true, false} {
			if b.tiny && !short {
				continue
			}
			rep, took, err := check(b, short)
			if err != nil {
				return err
			}
			if short {
				quick, quickCases = append(quick, took.Seconds()), len(rep.Cases)
			} else {
				full, cases = append(full, took.Seconds()), len(rep.Cases)
			}
		}
	}
	b.add(group, fmt.Sprintf("quick, %d cases", quickCases), "s", quick)
	b.add(group, fmt.Sprintf("full, %d cases", cases), "s", full)
	b.atMost("a quick check", " s", 3, quick)
	if !b.tiny {
		b.atMost("a full check", " s", 10, full)
	}
	return nil
}

// check runs the conformance suite against a new server in a process of its own,
// with all of the server's abilities declared (a second path, callers, ways to delay or fail an answer), so that few cases are skipped. It
// returns the report and the duration of the suite.
func check(b *bench, quick bool) (*conformance.Report, time.Duration, error) {
	server, err := startRole(b, "role-mock")
	if err != nil {
		return nil, 0, err
	}
	defer server.stop()
	began := time.Now()
	rep, err := conformance.Run(b, conformance.Options{
		URL: server.url + "/payments", Profile: checkedProfile(), Quick: quick,
		SecondPath: "/refunds", ActionPath: "/payments/{id}/cancel",
		Header:     http.Header{"Authorization": {"Bearer first-caller"}},
		As:         http.Header{"Authorization": {"Bearer second-caller"}},
		Witness:    server.url + "/_effects?ref={ref}#/count",
		DelayQuery: "sleep={ms}", FailQuery: "fail={status}", CrashQuery: "crash=1",
	})
	return rep, time.Since(began), err
}
