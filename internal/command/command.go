// Package command is the command oncehttp: its families of commands, help, topics and manual pages.
package command

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"runtime/debug"
	"strings"
	"syscall"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/oncehttp/oncehttp/internal/command/audit"
	"github.com/oncehttp/oncehttp/internal/command/batch"
	"github.com/oncehttp/oncehttp/internal/command/check"
	"github.com/oncehttp/oncehttp/internal/command/input"
	"github.com/oncehttp/oncehttp/internal/command/journal"
	"github.com/oncehttp/oncehttp/internal/command/mock"
	"github.com/oncehttp/oncehttp/internal/command/place"
	"github.com/oncehttp/oncehttp/internal/command/profile"
	"github.com/oncehttp/oncehttp/internal/command/send"
	"github.com/oncehttp/oncehttp/internal/command/settings"
	"github.com/oncehttp/oncehttp/internal/command/terminal"
	"github.com/oncehttp/oncehttp/internal/command/words"
	"github.com/oncehttp/oncehttp/internal/command/work"
)

// Main runs the command in this process with its arguments and streams, and exits with its status. It is the whole of package main.
func Main() {
	// If a reader (a pager, head) goes away, the write fails. The process must not
	// die in the middle of an attempt because of it.
	signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE)
	place.QuietRedis()
	os.Exit(Run(untilSignal(), os.Args[1:], os.Stdin, os.Stdout, os.Stderr))
}

// untilSignal returns a context that the first signal ends, so that the attempts under way can come to their end. The second one kills. A SIGHUP that is ignored, as
// under nohup, stays ignored.
func untilSignal() context.Context {
	ctx, end := context.WithCancel(context.Background())
	signals := make(chan os.Signal, 2)
	caught, deadly := []os.Signal{os.Interrupt, syscall.SIGTERM, syscall.SIGQUIT}, []os.Signal{syscall.SIGTERM}
	if !signal.Ignored(syscall.SIGHUP) {
		caught, deadly = append(caught, syscall.SIGHUP), append(deadly, syscall.SIGHUP)
	}
	if !signal.Ignored(os.Interrupt) { // as it is for a job that a script has put into the background
		deadly = append(deadly, os.Interrupt)
	}
	signal.Notify(signals, caught...)
	go func() {
		<-signals
		signal.Reset(deadly...)
		end()
		<-signals // The default of SIGQUIT prints all goroutines, and exits with the status for "nothing was sent".
		if self, err := os.FindProcess(os.Getpid()); err == nil {
			_ = self.Kill()
		}
	}()
	return ctx
}

// Run runs the command without a process of its own, and returns the exit status. When ctx ends, running sends come to their end,
// and nothing more is begun.
func Run(ctx context.Context, args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	cmd := Root(terminal.Streams{In: stdin, Out: stdout, Err: stderr, Done: ctx.Done()})
	cmd.SetArgs(args)
	cmd.SetIn(stdin)
	cmd.SetOut(stdout)
	cmd.SetErr(stderr)
	var unknown error
	help := cmd.HelpFunc()
	cmd.SetHelpFunc(func(of *cobra.Command, args []string) {
		needs := of.HasSubCommands() && !strings.Contains(of.Use, " ") // it does nothing without one
		if rest := of.Flags().Args(); needs && len(rest) > 0 {         // cobra shows its help, whatever the word
			unknown = settings.NeedsCommand(of, rest)
			return
		}
		help(of, args)
	})
	ran, err := cmd.ExecuteContextC(ctx)
	err = cmp.Or(err, unknown)
	if ReaderLeft(ran, err) {
		return terminal.ExitOK
	}
	if has := (*terminal.ExitError)(nil); ctx.Err() != nil && errors.Is(err, context.Canceled) && !errors.As(err, &has) {
		err = terminal.Interrupted()
	}
	var several *input.FaultsError
	switch {
	case errors.As(err, &several):
		for _, line := range several.Lines() {
			terminal.Say(stderr, "%s", line)
		}
	case terminal.Unsaid(err) != nil:
		terminal.Say(stderr, "%s", words.OneLine(err))
	}
	return terminal.StatusOf(err)
}

// Root returns the command with all its families.
func Root(s terminal.Streams) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "oncehttp",
		Short: "HTTP operations that must not take effect twice",
		Long: `oncehttp sends HTTP requests that must not take effect twice. It keeps each
one's idempotency key and bytes in a journal on disk until the server has
confirmed what happened, so that nothing is lost and, at an API that honours the
keys, nothing is done twice, also across crashes. At another API (--profile none) a
request is sent once (a 307 or 308 is followed), and held where its answer leaves a doubt.

Results go to stdout, the rest to stderr.

Exit status, unless a command says otherwise: 0 all well; 1 the work was done
and some of it was refused (declined, invalid, mismatched, or rejected for its
credentials); 2 the call or its input is wrong and nothing was sent; 3 something
is unknown, pending or still to do: run the same command again. 3 outranks 1. For
4 to 6 see oncehttp help exit-codes.`,
		Example: `  oncehttp mock --faults 'drop-after=0.2,503=0.1'
  oncehttp batch orders.csv --url http://127.0.0.1:8080/payments --key 'order:{user}:{order_id}'
  oncehttp journal list --journal orders.csv.oncehttp.db`,
		SilenceUsage:  true,
		SilenceErrors: true,
		Version:       version(),
		Args:          cobra.ArbitraryArgs,
		RunE:          settings.NeedsCommand,

		PersistentPreRunE: func(cmd *cobra.Command, _ []string) error { return settings.Prepare(cmd) },
	}
	cmd.AddCommand(batch.Command(s), send.Command(s), journal.Command(s), mock.Command(s), check.Command(s), audit.Command(s), work.Command(s), profile.Command(s), manCommand(s), versionCommand(s))
	cmd.AddCommand(helpTopics()...)
	cmd.SetHelpCommand(helpCommand())
	cmd.SetVersionTemplate("oncehttp {{.Version}}\n")
	cmd.SetFlagErrorFunc(flagError)
	completeFlags(cmd)
	return cmd
}

// flagError returns the error of cobra about a flag in words for the user: the kind of value, the flag probably meant, and the command for help.
func flagError(cmd *cobra.Command, err error) error {
	if wrong := (*pflag.InvalidValueError)(nil); errors.As(err, &wrong) {
		err = fmt.Errorf("--%s %q: %w", wrong.GetFlag().Name, words.Clip(wrong.GetValue()), settings.WantedValue(wrong.GetFlag(), wrong.Unwrap()))
	}
	return fmt.Errorf("%w%s; see %s --help", err, nearFlag(cmd, err), cmd.CommandPath())
}

// nearFlag returns a text such as " (--journal?)" with the flag probably meant by an unknown one; "" if none is near, or for another error.
func nearFlag(cmd *cobra.Command, err error) string {
	var unknown *pflag.NotExistError
	if !errors.As(err, &unknown) || len(unknown.GetSpecifiedName()) < 2 {
		return ""
	}
	var names []string
	for _, flags := range []*pflag.FlagSet{cmd.Flags(), cmd.InheritedFlags()} {
		flags.VisitAll(func(f *pflag.Flag) {
			if !f.Hidden {
				names = append(names, f.Name)
			}
		})
	}
	if near := words.Nearest(unknown.GetSpecifiedName(), names); near != "" {
		return " (--" + near + "?)"
	}
	return ""
}

// helpCommand returns the command help. Unlike cobra's, it fails for an unknown topic.
func helpCommand() *cobra.Command {
	return &cobra.Command{
		Use:     "help [COMMAND or TOPIC]",
		Short:   "Show the help of a command, or of a topic",
		Long:    "Show the help of a command, or of a topic.",
		Example: "  oncehttp help batch\n  oncehttp help results",
		RunE: func(cmd *cobra.Command, args []string) error {
			found, err := findHelp(cmd.Root(), args)
			if err != nil {
				return err
			}
			return found.Help()
		},
	}
}

// version returns the version of the module, with the revision if the build knows it.
func version() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "unknown"
	}
	text := info.Main.Version
	for _, s := range info.Settings {
		if s.Key == "vcs.revision" && !strings.Contains(text, s.Value[:min(12, len(s.Value))]) {
			text += " (" + s.Value[:min(12, len(s.Value))] + ")"
		}
	}
	return text + " " + info.GoVersion
}
