package main

import "github.com/spf13/pflag"

// pinFlags say to what operations are pinned beside their origin.
type pinFlags struct {
	credential, region string
}

func (f *pinFlags) bind(fs *pflag.FlagSet) {
	fs.StringVar(&f.credential, "credential", "", "the hash of the credential, sha256:HEX, never the credential; operations that were begun with another are not sent")
	fs.StringVar(&f.region, "region", "", "the name of the API's region; operations that were begun for another are not sent")
}
