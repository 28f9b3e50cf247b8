package audit_test

import (
	"fmt"
	"net/http"
	"testing"

	"github.com/oncehttp/oncehttp/internal/command/commandtest"
	"github.com/oncehttp/oncehttp/internal/command/terminal"
)

func TestMain(m *testing.M) { commandtest.RunTests(m) }

// doneJournal has the orders 1 to n, all done, of 1.00 each.
func doneJournal(t *testing.T, n int) string {
	t.Helper()
	s := commandtest.Serve(t, func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusCreated) })
	rows := "order,amount\n"
	for i := range n {
		rows += fmt.Sprintf("%d,1.00\n", i+1)
	}
	file := commandtest.WriteFile(t, "in.csv", rows)
	commandtest.Run(t, "batch", file, "--url", s.URL, "--key", "o:{order}").Want(t, terminal.ExitOK)
	return file + ".oncehttp.db"
}
