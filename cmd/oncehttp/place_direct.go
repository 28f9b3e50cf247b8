package main

import (
	"errors"
	"fmt"
	"net/url"

	"github.com/spf13/pflag"
)

// directFlag is the flag that says where one listens for what other processes enqueue.
const directFlag = "journal-direct"

// bindDirect binds --journal-direct, which belongs to the --journal of a command that runs for long.
func bindDirect(fs *pflag.FlagSet, to *string) {
	fs.StringVar(to, directFlag, "", "the PostgreSQL server itself, where --journal leads through a pooler: a URL, or @FILE with it; hears what other processes enqueue")
}

// errDirectShown refuses a password in the arguments of the command.
var errDirectShown = errors.New("--journal-direct: a password there would stand in the process list; " +
	"put the URL into a file (--journal-direct @FILE), or the password into PGPASSWORD or ~/.pgpass")

// parseDirect reads the value of --journal-direct; nil if it is empty. journal is what --journal names.
func parseDirect(text string, journal place) (*url.URL, error) {
	if text == "" {
		return nil, nil
	}
	if journal.isFile() || !onPostgres(journal) {
		return nil, fmt.Errorf("--journal-direct is for journals on PostgreSQL, and --journal is %s; leave it out", journal.name)
	}
	at, err := placeFrom("--"+directFlag, text)
	switch {
	case err != nil:
		return nil, err
	case at.isFile() || !onPostgres(at):
		return nil, errors.New("--journal-direct: " + wantURL)
	}
	direct, its := postgresAt(at.url)
	if _, of := postgresAt(journal.url); its.Schema != "" && its.Schema != of.Schema {
		return nil, fmt.Errorf("--journal-direct: it names the schema %s; leave that to --journal", clip(its.Schema))
	}
	return url.Parse(direct)
}

// onPostgres reports whether a place is on PostgreSQL.
func onPostgres(p place) bool {
	return !p.isFile() && (p.url.Scheme == "postgres" || p.url.Scheme == "postgresql")
}
