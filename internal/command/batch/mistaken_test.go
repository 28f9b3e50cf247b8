package batch_test

import (
	"context"
	"path/filepath"
	"strings"
	"testing"

	"github.com/oncehttp/oncehttp/internal/command"
	"github.com/oncehttp/oncehttp/internal/command/commandtest"
	"github.com/oncehttp/oncehttp/internal/command/terminal"
)

// TestFileInNoFolder: a file in a folder that is not there is named itself, not the journal that would lie beside it.
func TestFileInNoFolder(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "none", "in.csv")
	commandtest.Run(t, "batch", file, "--url", "http://127.0.0.1:1/", "--key", "o:{id}").Usage(t, "oncehttp: "+file+": no such file or directory")
}

// TestInterruptedCheck: a signal while the file is checked ends with a line that says that nothing was sent.
func TestInterruptedCheck(t *testing.T) {
	t.Parallel()
	ctx, interrupt := context.WithCancel(t.Context())
	interrupt()
	file := commandtest.WriteFile(t, filepath.Join(t.TempDir(), "in.csv"), commandtest.Orders(3))
	for _, more := range [][]string{nil, {"--dry-run"}} {
		var out, errs strings.Builder
		args := append([]string{"batch", file, "--url", "http://127.0.0.1:1/", "--key", commandtest.OrderKey}, more...)
		if status := command.Run(ctx, args, strings.NewReader(""), &out, &errs); status != terminal.ExitUnknown || !strings.Contains(errs.String(), "interrupted before anything was sent") {
			t.Errorf("%v: status %d, %q", more, status, errs.String())
		}
	}
}
