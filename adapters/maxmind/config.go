package maxmind

// Config names the databases (contract A-30). A database that is not named is not used.
type Config struct {
	CityDB string `env:"GEOIP_CITY_DB" desc:"MaxMind DB file that tells country and coordinates of addresses, such as GeoLite2-City.mmdb; read again when it changes"`
	ASNDB  string `env:"GEOIP_ASN_DB" desc:"MaxMind DB file that tells whose network addresses belong to, such as GeoLite2-ASN.mmdb; told in the audit log only"`
}

// Files returns the paths of the databases.
func (c Config) Files() []string {
	var files []string
	for _, path := range []string{c.CityDB, c.ASNDB} {
		if path != "" {
			files = append(files, path)
		}
	}
	return files
}
