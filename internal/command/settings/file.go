// Package settings gives flags their values: the configuration file, durations and times, the number of
// arguments.
package settings

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/oncehttp/oncehttp/internal/command/place"
	"github.com/oncehttp/oncehttp/internal/command/words"
)

// The configuration file gives values to flags not set by the call. A line is "flag = value" for every command
// with the flag, or "batch.flag = value" for one. ONCEHTTP_CONFIG names the file; else it is oncehttp/config in
// the user's configuration folder (XDG_CONFIG_HOME). Blank lines and lines beginning with # are skipped.

// configPath returns the path of the configuration file. named is true if ONCEHTTP_CONFIG names it: then it must exist. path is "" if there is no folder for it.
func configPath() (path string, named bool) {
	if path := os.Getenv("ONCEHTTP_CONFIG"); path != "" {
		return path, true
	}
	dir, err := os.UserConfigDir()
	if err != nil {
		return "", false
	}
	return filepath.Join(dir, "oncehttp", "config"), false
}

// Prepare checks the flags of the call for a password and for empty values, and adds the values of the configuration file. Each command calls it before its work.
func Prepare(cmd *cobra.Command) error {
	if err := place.CheckJournalFlag(cmd); err != nil {
		return err
	}
	if err := applyConfig(cmd); err != nil {
		return err
	}
	return checkEmpty(cmd)
}

// checkEmpty returns an error if one of some flags has an empty value, as from an unset shell variable. An empty value would change the journal, its
// sealing, the signature or the API without notice.
func checkEmpty(cmd *cobra.Command) error {
	for _, name := range []string{"journal", place.DirectFlag, "seal-key", "sign", "profile"} {
		if flag := cmd.Flags().Lookup(name); flag != nil && flag.Changed && flag.Value.Type() == "string" && flag.Value.String() == "" {
			return fmt.Errorf("--%s is empty; give it a value, or leave it out", name)
		}
	}
	return nil
}

// applyConfig sets the flags that the configuration file names and that the call has not given. A missing file is no error unless ONCEHTTP_CONFIG names it.
func applyConfig(cmd *cobra.Command) error {
	path, named := configPath()
	if path == "" {
		return nil
	}
	f, err := os.Open(path)
	if errors.Is(err, os.ErrNotExist) && !named {
		return nil
	}
	if err != nil {
		return fmt.Errorf("configuration file %s: %w", path, words.Pathless(err))
	}
	defer f.Close()
	given := map[string]int{} // by flag: the first line that sets it
	cmd.Flags().Visit(func(flag *pflag.Flag) { given[flag.Name] = 0 })
	lines := bufio.NewScanner(f)
	for number := 1; lines.Scan(); number++ {
		if err := applyLine(cmd, lines.Text(), number, given); err != nil {
			return fmt.Errorf("configuration file %s: line %d: %w", path, number, err)
		}
	}
	if err := lines.Err(); err != nil {
		return fmt.Errorf("configuration file %s: %w", path, words.Pathless(err))
	}
	return nil
}

// applyLine sets the flag of cmd that a line of the settings file names. number is that of the line. given has the flags that are set, with the line that did it, 0 for the
// call: what the call has given stays. A flag that may be repeated takes the values of all lines; another one that a line has set is an error. Empty lines, comments, and
// lines for other commands are ignored. An unknown flag is an error.
func applyLine(cmd *cobra.Command, text string, number int, given map[string]int) error {
	text = strings.TrimSpace(text)
	if text == "" || text[0] == '#' {
		return nil
	}
	name, value, found := strings.Cut(text, "=")
	name, value = strings.TrimSpace(name), strings.TrimSpace(value)
	if !found || name == "" {
		return errors.New("want flag = value, or command.flag = value")
	}
	if of, flag, scoped := strings.Cut(name, "."); scoped {
		if !commandIs(cmd, of) {
			return knownName(cmd.Root(), of, flag)
		}
		if name = flag; cmd.Flags().Lookup(name) == nil {
			return fmt.Errorf("%s has no flag --%s", of, name)
		}
	}
	flag := cmd.Flags().Lookup(name)
	if flag == nil {
		return knownName(cmd.Root(), "", name)
	}
	_, repeats := flag.Value.(pflag.SliceValue)
	switch line, set := given[name]; {
	case set && line == 0:
		return nil
	case set && !repeats:
		return fmt.Errorf("--%s has its value from line %d already", name, line)
	case !set:
		given[name] = number
	}
	if err := cmd.Flags().Set(name, value); err != nil {
		return fmt.Errorf("--%s: %w", name, WantedValue(flag, err))
	}
	return cmd.Flags().SetAnnotation(name, ofFile, nil)
}

// ofFile marks a flag that a line of the configuration file has set.
const ofFile = "oncehttp-of-file"

// IsInCall reports whether the call itself gave the flag: neither the configuration file did, nor nobody.
func IsInCall(fs *pflag.FlagSet, name string) bool {
	flag := fs.Lookup(name)
	_, isOfFile := flag.Annotations[ofFile]
	return flag.Changed && !isOfFile
}

// knownName checks a line of the settings file: its flag must belong to the command of, or to any command if of is "". Otherwise a typing error would
// have no effect, and nobody would notice.
func knownName(root *cobra.Command, of, flag string) error {
	hasCommand, hasFlag := of == "", false
	var look func(*cobra.Command, bool)
	look = func(cmd *cobra.Command, inside bool) { // inside: a command above cmd is the one wanted, or any is
		inside = inside || cmd.Name() == of
		hasCommand = hasCommand || inside
		if inside && (cmd.Flags().Lookup(flag) != nil || cmd.InheritedFlags().Lookup(flag) != nil || cmd.PersistentFlags().Lookup(flag) != nil) {
			hasFlag = true
		}
		for _, sub := range cmd.Commands() {
			look(sub, inside)
		}
	}
	look(root, of == "")
	switch {
	case !hasCommand:
		return fmt.Errorf("there is no command %s", of)
	case !hasFlag && of != "":
		return fmt.Errorf("%s has no flag --%s", of, flag)
	case !hasFlag:
		return fmt.Errorf("no command has a flag --%s", flag)
	}
	return nil
}

// commandIs reports whether cmd, or a command above it, such as journal for journal list, has this name. A line of the configuration file for that name then holds.
func commandIs(cmd *cobra.Command, name string) bool {
	for ; cmd != nil; cmd = cmd.Parent() {
		if cmd.Name() == name {
			return true
		}
	}
	return false
}
