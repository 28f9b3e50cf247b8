package check_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/oncehttp/oncehttp/internal/command/commandtest"
	"github.com/oncehttp/oncehttp/internal/report"
	"github.com/oncehttp/oncehttp/mockserver"
)

// A flag that names what does not work is said to, and ends the doctor with a
// status of its own.
func TestCheckDoctorFlags(t *testing.T) {
	t.Parallel()
	url := commandtest.StartMock(t, mockserver.Config{}).URL()
	for _, c := range []struct{ flag, value, word string }{
		{"--witness", url + "/_effects?ref={ref}#/nothing", "nothing stands at"},
		{"--witness", url + "/_ledger?ref={ref}#/sends", "never used"},
		{"--delay-query", "slumber={ms}", "--delay-query  does not work"}, // seen by the time of one operation, or on a slow machine by the overlap that never comes
		{"--fail-query", "break={status}", "was to fail"},
	} {
		got := commandtest.Run(t, "check", "doctor", url+"/payments", c.flag, c.value).Want(t, report.ExitFailed)
		if !strings.Contains(got.Out, c.flag) || !strings.Contains(got.Out, c.word) {
			t.Errorf("%s %s: the output does not name the flag and %q:\n%s", c.flag, c.value, c.word, got.Out)
		}
	}
}

// A server that ignores keys, and whose answers name nothing, is not cleared: the
// first line says that nothing could be seen, and the status is 4.
func TestCheckUndecided(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = fmt.Fprint(w, `{"ok":true}`) }))
	t.Cleanup(server.Close)
	got := commandtest.Run(t, "check", server.URL+"/payments", "--quick").Want(t, report.ExitUndecided)
	first, _, _ := strings.Cut(strings.TrimSpace(got.Out), "\n\n")
	if !strings.Contains(strings.Join(strings.Fields(first), " "), "Effects could not be counted") {
		t.Errorf("the report begins with %q, want it to say that no effect could be seen", first)
	}
}
