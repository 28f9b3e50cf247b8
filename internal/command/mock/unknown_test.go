package mock_test

import (
	"testing"

	"github.com/oncehttp/oncehttp/internal/command/commandtest"
	"github.com/oncehttp/oncehttp/internal/command/terminal"
)

// TestMockUnknown: the mock does not invent how an API answers, unless it is told to.
func TestMockUnknown(t *testing.T) {
	t.Parallel()
	path := commandtest.WriteProfile(t, "mine")
	commandtest.Run(t, "mock", "--profile", path).Want(t, terminal.ExitUsage).WantErr(t, "--profile mine: not known of this API: in_progress, mismatch; --assume plays what is common instead")
	commandtest.Run(t, "mock", "--profile", "gocardless").Want(t, terminal.ExitUsage).WantErr(t, "--profile gocardless: not known of this API: in_progress; --assume")
	commandtest.Run(t, "mock", "--profile", "none", "--assume").Want(t, terminal.ExitUsage).WantErr(t, "--profile none: it sends no key that the mock could honour; with --already-done")
	for _, args := range [][]string{{}, {"--profile", "stripe"}, {"--profile", path, "--assume"}} {
		commandtest.StartCommand(t, append(args, "--addr", "127.0.0.1:0")...).Stop().Want(t, terminal.ExitOK)
	}
}
