package main

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// TestRulesOfCommand: each expression of rules-command.yaml finds its metrics and labels in the output of the command: of the Deployment's worker, with a
// held operation and a refused one, and of journal stats --prometheus.
func TestRulesOfCommand(t *testing.T) {
	api := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, req *http.Request) {
		if req.URL.Path == "/refused" {
			http.NotFound(rw, req)
			return
		}
		http.Redirect(rw, req, "/elsewhere", http.StatusFound)
	}))
	t.Cleanup(api.Close)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	var pg workload
	manifest(t, "deployment.yaml", &pg)
	journal := enqueued(t, api.URL, "/payments", "/refused")
	worker, address, said := started(ctx, t, &pg.Spec.Template.Spec.Containers[0], journal, api.URL)
	for { // bounded by ctx
		if resp, err := http.Get(address + "/metrics"); err == nil {
			_ = resp.Body.Close()
			if len(scrape(t, address)["oncehttp_work_runs_total"]["outcome"]) > 1 {
				break
			}
		}
		if ctx.Err() != nil {
			t.Fatalf("nothing was sent: %s", said)
		}
		time.Sleep(10 * time.Millisecond) // a poll with a bound
	}
	ofWork := scrape(t, address)
	if err := errors.Join(worker.Process.Signal(syscall.SIGTERM), worker.Wait()); err != nil {
		t.Fatalf("%v: %s", err, said)
	}
	name, err := command()
	if err != nil {
		t.Fatal(err)
	}
	textfile := filepath.Join(t.TempDir(), "oncehttp.prom")
	if out, err := exec.CommandContext(ctx, name, "journal", "stats", "--journal", journal, "--quiet", "--prometheus", textfile).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	text, err := os.ReadFile(textfile)
	if err != nil {
		t.Fatal(err)
	}
	ofStats := samples(text)
	for _, e := range expressionsOfRules(t, "rules-command.yaml") {
		byWork, byStats := missing(e, ofWork), missing(e, ofStats)
		if both := strings.Contains(e, "oncehttp_operation_") || strings.Contains(e, "oncehttp_result_"); byWork != nil && (both || byStats != nil) || both && byStats != nil {
			t.Errorf("%s: of work: %v; of stats: %v", e, byWork, byStats)
		}
	}
}
