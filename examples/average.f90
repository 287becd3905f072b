! The processes of an MPI job average a vector, with the module of
! include/laconic/laconic.f90.
!
!     mpirun -n 4 average [ALGORITHM [COMPRESSOR]]
!
! The program initialises MPI and passes its communicator to Laconic, which
! loads the module for the MPI that the program is linked with.
program average
    use mpi
    use laconic
    implicit none

    integer, parameter :: rows = 20, cols = 50, n = rows * cols + rows
    integer, parameter :: rounds = 100
    character(len=*), parameter :: layout = &
        "weight 50 20" // new_line("a") // "bias 20"
    type(laconic_algorithm) :: averager
    character(len=40) :: algorithm, compressor
    real :: x(n), mean
    integer :: round, rank, ierror

    call MPI_Init(ierror)
    algorithm = "allreduce"
    if (command_argument_count() > 0) call get_command_argument(1, algorithm)
    if (command_argument_count() > 1) then
        call get_command_argument(2, compressor)
        call averager%open(MPI_COMM_WORLD, algorithm, layout, &
            compressor=compressor, topology="ring")
    else
        call averager%open(MPI_COMM_WORLD, algorithm, layout, topology="ring")
    end if

    rank = averager%rank()
    x = real(rank)
    if (averager%family() == laconic_gradient) then
        call averager%reduce(x)
    else
        do round = 1, rounds
            call averager%mix(x)
        end do
    end if

    mean = real(averager%workers() - 1) / 2
    if (maxval(abs(x - mean)) > 1e-4) then
        print "(a, i0, a, f8.4, a, f8.4)", "worker ", rank, " has ", x(1), &
            ", expected ", mean
        call MPI_Abort(MPI_COMM_WORLD, 1, ierror)
    end if
    print "(a, i0, a, f8.4)", "worker ", rank, " has the mean ", x(1)

    call averager%close()
    call MPI_Finalize(ierror)
end program
