//! Why a device node may not be opened: who owns it, who asks, and what would change that.
//!
//! Knows: owners, groups and modes of files, `/etc/passwd` and `/etc/group`. Must not know: KFD.

use std::path::Path;

/// Owner, group and permission bits of a file.
#[derive(Clone, Copy, Debug)]
struct Node {
    owner: u32,
    group: u32,
    mode: u32,
}

/// Who asks: the effective user, and its groups, the effective one first.
#[derive(Clone, Debug)]
struct Asker {
    user: u32,
    groups: Vec<u32>,
}

/// What the kernel shows for a number that a container's user namespace does not map.
const UNMAPPED: u32 = 65534;

/// The name of a number in the text of `/etc/passwd` or `/etc/group`, whose third field is the number.
fn name_of(table: &str, number: u32) -> Option<&str> {
    if number == UNMAPPED {
        return None;
    }
    table.lines().find_map(|line| {
        let mut fields = line.split(':');
        let name = fields.next()?;
        (fields.nth(1)?.parse() == Ok(number)).then_some(name)
    })
}

/// What to say of `path`, which may not be opened for reading and writing: as `node is root:render 0660; you are …`.
pub(super) fn explain(path: &Path) -> String {
    use std::os::unix::fs::MetadataExt as _;
    let read = |file: &str| std::fs::read_to_string(file).unwrap_or_default();
    let mut groups = vec![rustix::process::getegid().as_raw()];
    for group in rustix::process::getgroups().unwrap_or_default() {
        if !groups.contains(&group.as_raw()) {
            groups.push(group.as_raw());
        }
    }
    let asker = Asker {
        user: rustix::process::geteuid().as_raw(),
        groups,
    };
    let node = std::fs::metadata(path).ok().map(|metadata| Node {
        owner: metadata.uid(),
        group: metadata.gid(),
        mode: metadata.mode() & 0o7777,
    });
    sentence(
        &path.display().to_string(),
        node,
        &asker,
        &read("/etc/passwd"),
        &read("/etc/group"),
    )
}

fn sentence(path: &str, node: Option<Node>, asker: &Asker, passwd: &str, group: &str) -> String {
    let user = |number| name_of(passwd, number).map_or_else(|| number.to_string(), str::to_owned);
    let group_name =
        |number| name_of(group, number).map_or_else(|| number.to_string(), str::to_owned);
    let mut text = format!("{path} is there, but this process may not open it");
    let Some(node) = node else {
        text.push_str(" (its owner cannot be read either)");
        return text;
    };
    text.push_str(&format!(
        ": it is {}:{} {:04o}; you are {}",
        user(node.owner),
        group_name(node.group),
        node.mode,
        user(asker.user),
    ));
    if name_of(passwd, asker.user).is_none() {
        text.push_str(" (a user without a name here)");
    }
    let names: Vec<String> = asker.groups.iter().map(|of| group_name(*of)).collect();
    text.push_str(&format!(" in {}", names.join(", ")));
    let all = |bits: u32| bits & 6 == 6;
    let member = asker.groups.contains(&node.group);
    if asker.user == node.owner && all(node.mode >> 6)
        || member && all(node.mode >> 3)
        || all(node.mode)
    {
        text.push_str(
            "; its permissions allow it: a container's device list, or a security module, forbids it",
        );
    } else if !all(node.mode >> 3) {
        text.push_str("; not even its group may read and write it: chmod g+rw it, or mend the udev rule that makes it");
    } else {
        let fix = match (name_of(group, node.group), name_of(passwd, asker.user)) {
            (Some(group), Some(user)) => format!(
                "`usermod -aG {group} {user}` and log in anew; for a container, --group-add {}",
                node.group
            ),
            _ if node.group == UNMAPPED => String::from(
                "the group is not mapped into this container: start it with --group-add and the group's number \
                 outside (`stat -c %g` of the node there), or with --group-add keep-groups",
            ),
            // numbers without names are those of the world outside a container
            _ => format!(
                "start the container with --group-add {}, which is the group's number outside",
                node.group
            ),
        };
        text.push_str(&format!("; fix: {fix}"));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    const PASSWD: &str = "root:x:0:0:root:/:/bin/sh\nann:x:1000:1000::/:/bin/sh\n";
    const GROUP: &str = "root:x:0:\nann:x:1000:\nvideo:x:44:ann\nrender:x:109:\nnogroup:x:65534:\n";

    fn told(node: (u32, u32, u32), user: u32, groups: &[u32]) -> String {
        let (owner, group, mode) = node;
        let asker = Asker {
            user,
            groups: groups.to_vec(),
        };
        let node = Node { owner, group, mode };
        sentence("/dev/kfd", Some(node), &asker, PASSWD, GROUP)
    }

    #[test]
    fn a_user_outside_the_nodes_group_hears_which_group_it_is() {
        assert_eq!(
            told((0, 109, 0o660), 1000, &[1000, 44]),
            "/dev/kfd is there, but this process may not open it: it is root:render 0660; you are ann in ann, video; \
             fix: `usermod -aG render ann` and log in anew; for a container, --group-add 109"
        );
    }

    #[test]
    fn numbers_without_names_stay_numbers() {
        assert_eq!(
            told((0, 992, 0o660), 4711, &[4711]),
            "/dev/kfd is there, but this process may not open it: it is root:992 0660; you are 4711 (a user without a name \
             here) in 4711; fix: start the container with --group-add 992, which is the group's number outside"
        );
        // a container's root, whose user namespace does not map the group
        let text = told((65534, 65534, 0o660), 0, &[0]);
        assert!(
            text.contains("it is 65534:65534 0660; you are root in root"),
            "{text}"
        );
        assert!(text.contains("is not mapped into this container"), "{text}");
        assert!(!text.contains("nogroup"), "{text}");
    }

    #[test]
    fn permissions_that_do_not_explain_it_are_not_blamed() {
        let text = told((0, 109, 0o660), 1000, &[1000, 109]);
        assert!(text.ends_with("a security module, forbids it"), "{text}");
        let text = told((0, 109, 0o600), 1000, &[1000, 109]);
        assert!(text.contains("chmod g+rw"), "{text}");
    }
}
