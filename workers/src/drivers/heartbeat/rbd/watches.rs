//! What `rados` prints of an image: its id, and who watches its header.

use std::net::IpAddr;

/// A watch of a client.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Watch {
    pub address: IpAddr,
    /// The client with its address, for people.
    pub client: String,
}

/// The object that those who have an image open watch, from the content of the object with the image's id: a length of four bytes, and the id.
pub(super) fn header_of(content: &str) -> Option<String> {
    let id = content.get(4..)?;
    let is_id = !id.is_empty() && id.chars().all(|c| c.is_ascii_alphanumeric());
    is_id.then(|| format!("rbd_header.{id}"))
}

/// Watches, one a line, such as `watcher=192.0.2.7:0/3271 client.4151 cookie=1`. All or nothing: a watch that cannot be read may be of the host.
pub(super) fn parse(listed: &str) -> Result<Vec<Watch>, String> {
    let lines = listed.lines().filter(|line| !line.trim().is_empty());
    let watch = |line: &str| watch(line).ok_or_else(|| format!("the watch {line:?} cannot be read"));
    lines.map(watch).collect()
}

fn watch(line: &str) -> Option<Watch> {
    let mut words = line.split_whitespace();
    let at = words.next()?.strip_prefix("watcher=")?;
    let client = words.next().filter(|word| word.starts_with("client."))?;
    words.next()?.strip_prefix("cookie=")?;
    // Which of its protocols the client speaks may be told before the address.
    let socket = ["v1:", "v2:", "any:"]
        .iter()
        .find_map(|kind| at.strip_prefix(kind))
        .unwrap_or(at);
    let (socket, _) = socket.rsplit_once('/')?;
    let (ip, _) = socket.rsplit_once(':')?;
    let ip = ip
        .strip_prefix('[')
        .and_then(|ip| ip.strip_suffix(']'))
        .unwrap_or(ip);
    Some(Watch {
        address: ip.parse().ok()?,
        client: format!("{client} at {ip}"),
    })
}

#[cfg(test)]
mod tests {
    use ringfence_backends::Addresses;

    use super::super::super::addresses::has;
    use super::*;

    #[test]
    fn a_watch_is_of_the_host_that_has_its_address() {
        let listed = "watcher=127.0.0.1:0/1774229839 client.4151 cookie=94642035799216\n\
                      watcher=v1:[fd00::7]:0/3 client.9 cookie=18446462598732840961\n";
        let watches = parse(listed).unwrap();
        let of = |host: &str| {
            let host = Addresses::parse(host).unwrap();
            watches.iter().filter(|watch| has(&host, watch.address)).count()
        };
        assert_eq!(
            (of("127.0.0.1"), of("192.0.2.7,fd00::7"), of("127.0.0.2")),
            (1, 1, 0)
        );
        assert_eq!(watches[1].client, "client.9 at fd00::7");
        assert_eq!(parse("").unwrap(), []);
    }

    #[test]
    fn a_list_that_cannot_be_read_as_a_whole_says_nothing() {
        for odd in [
            "watcher=:/0 client.4151 cookie=1",
            "watcher=127.0.0.1:0/1 mon.a cookie=1",
            "127.0.0.1:0/1 client.1 cookie=1",
            "watcher=127.0.0.1:0/1 client.4151",
            "error listing watchers",
        ] {
            assert!(parse(odd).unwrap_err().contains("cannot be read"), "{odd}");
        }
    }

    #[test]
    fn an_image_is_known_by_its_id() {
        let header = header_of("\u{c}\u{0}\u{0}\u{0}100eee9111da").unwrap();
        assert_eq!(header, "rbd_header.100eee9111da");
        for odd in ["", "\0\0\0\0", "\u{3}\0\0\0a/b", "ab"] {
            assert_eq!(header_of(odd), None, "{odd:?}");
        }
    }
}
