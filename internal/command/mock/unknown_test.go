package mock_test

import (
	"testing"

	"github.com/oncehttp/oncehttp/internal/command/commandtest"
	"github.com/oncehttp/oncehttp/internal/command/terminal"
)

// TestMockUnknown: the mock does not invent how an API answers, unless it is told to. Of a ready profile it plays what the client assumes.
func TestMockUnknown(t *testing.T) {
	t.Parallel()
	path := commandtest.WriteProfile(t, "mine")
	commandtest.Run(t, "mock", "--profile", path).Want(t, terminal.ExitUsage).WantErr(t, "--profile mine: not known of this API: in_progress, mismatch; --assume plays what is common instead")
	commandtest.Run(t, "mock", "--profile", "rapyd").Want(t, terminal.ExitUsage).WantErr(t, "--profile rapyd: not known of this API: in_progress, mismatch; --assume")
	commandtest.Run(t, "mock", "--profile", "none", "--assume").Want(t, terminal.ExitUsage).WantErr(t, "--profile none: it sends no key that the mock could honour; with --already-done")
	for _, args := range [][]string{{}, {"--profile", "stripe"}, {"--profile", "gocardless"}, {"--profile", path, "--assume"}} {
		commandtest.StartCommand(t, append(args, "--addr", "127.0.0.1:0")...).Stop().Want(t, terminal.ExitOK)
	}
}
