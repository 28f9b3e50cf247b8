// Command oncehttp sends HTTP operations that must take effect exactly once,
// from a file or one by one, keeps them in a journal, and tests servers and
// clients of idempotency keys. See oncehttp --help.
package main

import (
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
)

func main() {
	// A reader that goes away (a pager, head) is an error of the write, and no
	// reason to die in the middle of an attempt.
	signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE)
	quietRedis()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	// After the first signal the default comes back: the second kills.
	context.AfterFunc(ctx, stop)
	os.Exit(exec(ctx, os.Args[1:], os.Stdin, os.Stdout, os.Stderr))
}

// exec is the command without its process. It returns the exit status. When ctx
// ends, what is on the wire is let come to its end, and nothing more is begun.
func exec(ctx context.Context, args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	cmd := rootCommand(streams{in: stdin, out: stdout, err: stderr})
	cmd.SetArgs(args)
	cmd.SetIn(stdin)
	cmd.SetOut(stdout)
	cmd.SetErr(stderr)
	ran, err := cmd.ExecuteContextC(ctx)
	if readerLeft(ran, err) {
		return exitOK
	}
	if has := (*exitError)(nil); ctx.Err() != nil && errors.Is(err, context.Canceled) && !errors.As(err, &has) {
		err = errInterrupted()
	}
	var several *faultsError
	switch {
	case errors.As(err, &several):
		for _, line := range several.lines() {
			say(stderr, "%s", line)
		}
	case unsaid(err) != nil:
		say(stderr, "%s", oneLine(err))
	}
	return statusOf(err)
}

func rootCommand(s streams) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "oncehttp",
		Short: "HTTP operations that take effect exactly once",
		Long: `oncehttp sends HTTP requests that must take effect exactly once. It keeps each
one's idempotency key and bytes in a journal on disk until the server has
confirmed what happened, so that nothing is lost and nothing is done twice,
also across crashes.

Results go to stdout, the rest to stderr.

Exit status, unless a command says otherwise: 0 all well; 1 the work was done
and some of it was refused (declined, invalid, rejected or mismatched); 2 the
call or its input is wrong and nothing was sent; 3 something is unknown or still
pending: run the same command again. 3 outranks 1. For 4 to 6 see
oncehttp help exit-codes.`,
		Example: `  oncehttp mock --faults 'drop-after=0.2,503=0.1'
  oncehttp batch orders.csv --url http://127.0.0.1:8080/payments --key 'order:{user}:{order_id}'
  oncehttp journal list --journal orders.csv.oncehttp.db`,
		SilenceUsage:  true,
		SilenceErrors: true,
		Version:       version(),
		Args:          cobra.ArbitraryArgs,
		RunE:          needsCommand,

		PersistentPreRunE: func(cmd *cobra.Command, _ []string) error { return prepare(cmd) },
	}
	cmd.AddCommand(batchCommand(s), sendCommand(s), journalCommand(s), mockCommand(s), checkCommand(s), auditCommand(s), workCommand(s), profileCommand(s), manCommand(s), versionCommand(s))
	cmd.AddCommand(helpTopics()...)
	cmd.SetHelpCommand(helpCommand())
	cmd.SetVersionTemplate("oncehttp {{.Version}}\n")
	cmd.SetFlagErrorFunc(flagError)
	completeFlags(cmd)
	return cmd
}

// flagError says what is wrong with a flag, and where the flags are listed.
func flagError(cmd *cobra.Command, err error) error {
	if wrong := (*pflag.InvalidValueError)(nil); errors.As(err, &wrong) {
		err = fmt.Errorf("--%s %q: %w", wrong.GetFlag().Name, clip(wrong.GetValue()), wantedValue(wrong.GetFlag(), wrong.Unwrap()))
	}
	return fmt.Errorf("%w; see %s --help", err, cmd.CommandPath())
}

// wantedValue is what a flag takes, in words; cause is the error of the library that
// read its value.
func wantedValue(flag *pflag.Flag, cause error) error {
	switch flag.Value.Type() {
	case "int":
		return errors.New("want a whole number")
	case "uint64":
		return errors.New("want a whole number that is not negative")
	case "float64":
		return errors.New("want a number")
	case "duration":
		return errors.New("want a duration such as 30s or 5m")
	case "age":
		return errNoAge
	case "bool":
		return errors.New("want true or false")
	}
	return cause
}

// needsCommand is what a command that only groups others does by itself.
func needsCommand(cmd *cobra.Command, args []string) error {
	path := cmd.CommandPath()
	what := strings.TrimPrefix(strings.TrimPrefix(path, cmd.Root().Name()), " ")
	if what != "" {
		what += ": "
	}
	if len(args) > 0 {
		cmd.SuggestionsMinimumDistance = 2 // edits away; cobra sets it only where it prints itself
		meant := ""
		if near := cmd.SuggestionsFor(args[0]); len(near) > 0 {
			meant = " (" + near[0] + "?)"
		}
		return fmt.Errorf("%sunknown command %s%s; see %s --help", what, clip(args[0]), meant, path)
	}
	return fmt.Errorf("%sa command is needed; see %s --help", what, path)
}

// helpCommand is cobra's, but for topics that there are not: those fail.
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

// version is that of the module, with the revision where the build knows it.
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
