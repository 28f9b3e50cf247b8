package main

import (
	"bytes"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"testing"

	"github.com/oncehttp/oncehttp/mockserver"
)

// asProgram makes the test binary be the program, which starts itself again.
const asProgram = "FLEET_TEST_AS_PROGRAM"

func TestMain(m *testing.M) {
	if os.Getenv(asProgram) != "" {
		main()
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// Without a database the program says so in a line, and ends with 1.
func TestNoDatabase(t *testing.T) {
	t.Parallel()
	cmd := exec.CommandContext(t.Context(), os.Args[0])
	cmd.Env = append(os.Environ(), asProgram+"=1", "ONCEHTTP_TEST_POSTGRES=postgres://postgres:hunter2@127.0.0.1:1/postgres")
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	err := cmd.Run()
	if cmd.ProcessState.ExitCode() != 1 || !regexp.MustCompile(`^fleet: this example needs PostgreSQL; start one, or set ONCEHTTP_TEST_POSTGRES: `).Match(errs.Bytes()) {
		t.Errorf("%v, it said %q", err, errs.String())
	}
	if strings.Contains(errs.String(), "hunter2") {
		t.Errorf("it shows the password: %q", errs.String())
	}
}

// The verdict is good only if each order was paid once, and nothing else.
func TestJudge(t *testing.T) {
	t.Parallel()
	one, two, other := string(keyOf("o1")), string(keyOf("o2")), string(keyOf("o9"))
	for name, c := range map[string]struct {
		effects map[string]int
		good    bool
	}{
		"once each":       {map[string]int{one: 1, two: 1}, true},
		"one is lost":     {map[string]int{one: 1}, false},
		"one is twice":    {map[string]int{one: 1, two: 2}, false},
		"one without row": {map[string]int{one: 1, two: 1, other: 1}, false},
	} {
		ledger := mockserver.Snapshot{Keys: map[string]mockserver.Count{}}
		for key, n := range c.effects {
			ledger.Keys[key] = mockserver.Count{Sends: n, Effects: n}
			ledger.Sends, ledger.Effects = ledger.Sends+n, ledger.Effects+n
		}
		var out bytes.Buffer
		if err := judge(&out, 3, []string{"o1", "o2"}, ledger); (err == nil) != c.good {
			t.Errorf("%s: %v\n%s", name, err, &out)
		}
	}
}
