package main

import (
	"errors"
	"fmt"

	"github.com/spf13/cobra"
)

func journalMigrateCommand(f *journalFlags, s streams) *cobra.Command {
	var show bool
	cmd := &cobra.Command{
		Use:   "migrate [URL]",
		Short: "Make or update the tables of a journal on a database server",
		Long: `Make the tables of a journal on a database server, or bring them to the version
that this program knows. Any number of processes may do so at once; where nothing
is to be done, nothing is. No other command changes the tables. --print shows the
SQL, for administrators who run it themselves, and connects to nothing.

The URL may stand here or in --journal. See oncehttp help journals.`,
		Example: `  oncehttp journal migrate postgres://shop@db.internal/shop
  oncehttp journal migrate postgres://shop@db.internal/shop --print > journal.sql`,
		Args: wantArgs(0, 1, "one URL"),
		RunE: func(cmd *cobra.Command, args []string) error {
			at, err := f.placeOf(args)
			if err != nil {
				return err
			}
			if at.isFile() {
				return fmt.Errorf("journal %s: a file is made where it is first used, and needs no migration; migrate takes a URL", at.name)
			}
			e := at.engine()
			switch {
			case e.migrate == nil:
				say(s.out, "nothing to migrate: %s", at.name)
				return nil
			case show:
				return e.print(s.out, at.url)
			}
			if err := e.migrate(cmd.Context(), at.url); err != nil {
				return serverError(at, err)
			}
			say(s.out, "migrated: %s", at.name)
			return nil
		},
	}
	cmd.Flags().BoolVar(&show, "print", false, "print the SQL, and run nothing")
	return cmd
}

// placeOf is the place that the argument names, or else --journal.
func (f *journalFlags) placeOf(args []string) (place, error) {
	if len(args) == 0 {
		return f.place()
	}
	if f.journal != "" {
		return place{}, errors.New("the journal is named twice, as an argument and by --journal; say one")
	}
	if showsPassword(args[0]) {
		return place{}, errPasswordShown(fromArgument, "@FILE")
	}
	return f.placeAt(fromArgument, args[0])
}
