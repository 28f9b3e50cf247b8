package work

import (
	"io"
	"testing"
	"time"

	"github.com/oncehttp/oncehttp/internal/command/terminal"
)

// --lease and --max-pause reach the client.
func TestWorkConfig(t *testing.T) {
	t.Parallel()
	f := &workFlags{}
	cmd := f.command(terminal.Streams{})
	if err := cmd.ParseFlags([]string{"--lease", "5s", "--max-pause", "2m"}); err != nil {
		t.Fatal(err)
	}
	cfg, err := f.config(io.Discard)
	if err != nil || cfg.Lease != 5*time.Second || cfg.Retry.MaxPause != 2*time.Minute {
		t.Errorf("lease %v, pause %v, %v", cfg.Lease, cfg.Retry.MaxPause, err)
	}
}
