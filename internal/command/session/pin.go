package session

import (
	"github.com/spf13/pflag"
)

// PinFlags are the values pinned to operations beside their origin.
type PinFlags struct {
	Credential, Region string
}

// Bind adds --credential and --region to fs.
func (f *PinFlags) Bind(fs *pflag.FlagSet) {
	fs.StringVar(&f.Credential, "credential", "", "the hash of the credential, sha256:HEX, never the credential; operations that were begun with another are not sent")
	fs.StringVar(&f.Region, "region", "", "the name of the API's region; operations that were begun for another are not sent")
}
