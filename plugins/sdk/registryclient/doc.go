// Package registryclient is the HTTP client of the plugins that check package ownership: it reaches
// only the registries that are allowed, sends credentials only where they belong, and bounds time
// and bytes of each answer (contract ). It knows no registry's paths and reads no answer;
// each plugin does that.
//
//	client, err := registryclient.Open(registryclient.Config{
//		Defaults: []string{"https://packages.example.com"}, Environment: os.Getenv,
//	})
//	...
//	func (r registry) Check(ctx context.Context, c sdk.Claim) error {
//		ctx, cancel := registryclient.Within(ctx)
//		defer cancel()
//		at, err := r.client.Base(c.RegistryBaseURL)
//		if err != nil {
//			return err
//		}
//		var answer struct{ Readme string }
//		err = at.JSON(ctx, "packages/"+url.PathEscape(c.Identifier), registryclient.Options{}, &answer)
//		if registryclient.Is(err, registryclient.NotFound) {
//			return sdk.Refuse("there is no package %q", c.Identifier)
//		}
//		return registryclient.Verdict(err)
//	}
package registryclient
