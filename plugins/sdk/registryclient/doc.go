// Package registryclient is the HTTP client of plugins that check package ownership. It connects
// only to the allowed registries, sends credentials only to the registry that they belong to, and
// limits the time and the size of each response (contract ). It does not know the paths
// or the formats of registries; the plugins do.
//
//	client, err := registryclient.Open(registryclient.Config{
//		Defaults: []string{"https://packages.example.com"}, Environment: os.Getenv,
//	})
//	...
//	func (r registry) Check(ctx context.Context, c sdk.Claim) error {
//		return r.client.CheckAt(ctx, c.RegistryBaseURL, func(ctx context.Context, base *registryclient.Base) error {
//			var answer struct{ Readme string }
//			err := base.JSON(ctx, "packages/"+url.PathEscape(c.Identifier), registryclient.Options{}, &answer)
//			if registryclient.Is(err, registryclient.NotFound) {
//				return sdk.Refuse("there is no package %q", c.Identifier)
//			}
//			if err != nil {
//				return err
//			}
//			place := fmt.Sprintf("the readme of package %q", c.Identifier)
//			return mcpname.Check(answer.Readme, c.ServerName, place)
//		})
//	}
package registryclient
