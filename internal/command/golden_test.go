package command_test

import (
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"github.com/oncehttp/oncehttp/internal/command"
	"github.com/oncehttp/oncehttp/internal/command/commandtest"
	"github.com/oncehttp/oncehttp/internal/command/golden"
	"github.com/oncehttp/oncehttp/internal/command/terminal"
)

// The help of every command and topic is what was read and found good.
func TestGoldenHelp(t *testing.T) {
	t.Parallel()
	var walk func(*cobra.Command)
	walk = func(cmd *cobra.Command) {
		path := strings.Fields(cmd.CommandPath())[1:]
		got := commandtest.Run(t, append([]string{"help"}, path...)...).Want(t, terminal.ExitOK)
		golden.Compare(t, "help/"+strings.Join(append([]string{"oncehttp"}, path...), "-"), got.Out)
		for _, sub := range cmd.Commands() {
			walk(sub)
		}
	}
	walk(command.Root(terminal.Streams{}))
}
